package redistest

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
)

// Proxy stands between a client and a server, and loses replies on demand: the
// server has done what it was asked, and nobody hears of it.
type Proxy struct {
	listener net.Listener
	server   string
	lose     atomic.Int32
}

// StartProxy starts a proxy that ends with the test.
func StartProxy(t testing.TB, server *Server) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	p := &Proxy{listener: listener, server: server.Addr()}
	go p.serve()
	return p
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// LoseReplies makes as many replies be lost, each with its connection.
func (p *Proxy) LoseReplies(count int32) { p.lose.Store(count) }

func (p *Proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		go func() {
			_, _ = io.Copy(server, client)
			_ = server.Close()
		}()
		go p.reply(client, server)
	}
}

func (p *Proxy) reply(client, server net.Conn) {
	defer func() { _, _ = client.Close(), server.Close() }()
	buffer := make([]byte, 64<<10)
	for {
		length, err := server.Read(buffer)
		if err != nil {
			return
		}
		if p.lose.Load() > 0 {
			p.lose.Add(-1)
			return
		}
		if _, err := client.Write(buffer[:length]); err != nil {
			return
		}
	}
}
