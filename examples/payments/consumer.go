// Charges what comes on its queue, and ends when DELIVERIES (a variable of the
// environment) are acknowledged. The consumer in Node does the same at the same time.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	guard "github.com/babelqueue/babelqueue-guard/host/go"
	"github.com/babelqueue/babelqueue-guard/host/go/redisstore"
	"github.com/redis/go-redis/v9"
)

const (
	queue      = "payments.go"
	processing = queue + ":processing"
	patience   = time.Minute
)

type charge struct {
	Order string `json:"order"`
	Cents int    `json:"cents"`
}

func main() {
	log.SetFlags(0)
	deliveries, err := strconv.Atoi(os.Getenv("DELIVERIES"))
	if err != nil {
		log.Fatal(err)
	}
	if err := consume(context.Background(), deliveries); err != nil {
		log.Fatal(err)
	}
}

func consume(ctx context.Context, deliveries int) error {
	options, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	client := redis.NewClient(options)
	defer client.Close()
	// One consumer in two languages: one name, and so the same marks and leases.
	store, err := redisstore.New(client, redisstore.Consumer("billing"))
	if err != nil {
		return err
	}
	g, err := guard.New(store, guard.WithClaims())
	if err != nil {
		return err
	}

	acknowledged, parked := 0, 0
	log.Print("go: ready")
	for acknowledged < deliveries {
		envelope, err := client.BLMove(ctx, queue, processing, "LEFT", "RIGHT", patience).Result()
		if errors.Is(err, redis.Nil) {
			return fmt.Errorf("nothing came for %s", patience)
		} else if err != nil {
			return err
		}
		result, err := g.Process(ctx, guard.Body(envelope), func(ctx context.Context, _ *guard.Run) error {
			return pay(ctx, client, envelope)
		})
		if err != nil {
			return err
		}
		settle := client.TxPipeline()
		settle.LRem(ctx, processing, 1, envelope)
		if result.Decision == guard.Parked {
			parked++
			time.Sleep(5 * time.Millisecond)
			settle.RPush(ctx, queue, envelope) // the other holds it: to be delivered again later
		} else {
			acknowledged++
		}
		if _, err := settle.Exec(ctx); err != nil {
			return err
		}
	}
	fmt.Printf("go: %d deliveries acknowledged\n", acknowledged)
	log.Printf("go: %d times a payment was in the other's hands", parked)
	return nil
}

func pay(ctx context.Context, client *redis.Client, envelope string) error {
	var payment struct{ Data charge }
	if err := json.Unmarshal([]byte(envelope), &payment); err != nil {
		return err
	}
	time.Sleep(10 * time.Millisecond) // the card service takes its time
	entry, err := json.Marshal(payment.Data)
	if err != nil {
		return err
	}
	return client.RPush(ctx, "payments.ledger", entry).Err()
}
