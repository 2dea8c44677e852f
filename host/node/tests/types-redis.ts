// Compiled, not run: the clients that a Redis store takes.
import { RedisStore } from 'babelqueue-guard/redis';
import { Redis } from 'ioredis';
import { createClient, createClientPool } from 'redis';

new RedisStore(createClient());
new RedisStore(createClient({ url: 'redis://localhost', RESP: 2 }), { consumer: 'mail' });
new RedisStore(new Redis());
// @ts-expect-error -- a pool does not keep the order of commands
new RedisStore(createClientPool());
// @ts-expect-error -- neither does a cluster
new RedisStore(new Redis.Cluster([]));
