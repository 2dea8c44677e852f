// Package redisstore keeps marks, leases and steps in Redis 6.2 or later, or
// any Valkey, over go-redis. The keys are those of contract section 8, which
// every language's store shares, and the stores of the BabelQueue Go SDK too:
// they write `SET key 1 PX` and read `EXISTS`.
//
// The SDK's own Claim writes the mark before its handler runs. A consumer that
// uses it must not share a store with anybody.
package redisstore
