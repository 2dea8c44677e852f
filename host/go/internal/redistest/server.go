// Package redistest starts real servers for tests and benchmarks.
package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Server is a redis-server of our own on a free port.
type Server struct {
	Port    int
	program string
	folder  string
	options []string
	process *exec.Cmd
}

// Start starts a server that ends with the test. Without redis-server the test
// is skipped, and in CI it fails.
func Start(t testing.TB, options ...string) *Server {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("redis-server is not installed, and in CI it must be")
		}
		t.Skip("redis-server is not installed")
	}
	s := &Server{Port: freePort(t), program: program, folder: t.TempDir(), options: options}
	t.Cleanup(s.Kill)
	if err := s.Run(); err != nil {
		t.Fatal(err)
	}
	return s
}

// Run starts the server, again on the same port with what it saved.
func (s *Server) Run() error {
	arguments := append([]string{
		"--port", strconv.Itoa(s.Port), "--bind", "127.0.0.1", "--dir", s.folder,
		"--save", "", "--appendonly", "yes", "--appendfsync", "always",
	}, s.options...)
	s.process = exec.Command(s.program, arguments...)
	if err := s.process.Start(); err != nil {
		return err
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		connection, err := net.Dial("tcp", s.Addr())
		if err == nil {
			return connection.Close()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("redis-server on port %d does not answer: %w", s.Port, err)
		}
	}
}

// Addr is where the server listens.
func (s *Server) Addr() string { return fmt.Sprintf("127.0.0.1:%d", s.Port) }

// URL names the server and its first database.
func (s *Server) URL() string { return fmt.Sprintf("redis://%s/0", s.Addr()) }

// Client gives a raw client that ends with the test.
func (s *Server) Client(t testing.TB) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: s.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Kill ends the server at once, as a crash does.
func (s *Server) Kill() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
	s.process = nil
}

// Stop makes the server stop answering; its connections stay.
func (s *Server) Stop() { _ = s.process.Process.Signal(syscall.SIGSTOP) }

// Continue lets it answer again.
func (s *Server) Continue() { _ = s.process.Process.Signal(syscall.SIGCONT) }

// Do sends one raw command.
func (s *Server) Do(t testing.TB, command ...any) any {
	t.Helper()
	value, err := s.Client(t).Do(context.Background(), command...).Result()
	if err != nil && err != redis.Nil {
		t.Fatalf("%v: %v", command, err)
	}
	return value
}

func freePort(t testing.TB) int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}
