package io.github.babelqueue.guard.store;

import static io.github.babelqueue.guard.SharedCases.envelope;
import static java.util.stream.Collectors.partitioningBy;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.babelqueue.guard.ClaimOutcome;
import io.github.babelqueue.guard.Guard;
import io.github.babelqueue.guard.Result;
import io.github.babelqueue.guard.StoreUnavailableException;
import java.util.Set;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.RedisClusterClient;
import redis.clients.jedis.util.JedisClusterCRC16;

/** A mark and a lease on different nodes of a real cluster. */
@Timeout(120)
class RedisClusterTest {
  /** A bit of the slot's number that differs between mark and lease, for all ids of one length. */
  private static final int BIT = Integer.lowestOneBit(slot("bq:idemp:A00") ^ slot("bq:lease:A00"));

  private static boolean isOnFirst(int slot) {
    return (slot & BIT) == 0;
  }

  private static void join(Jedis one, Jedis other, int port) throws InterruptedException {
    var slots = IntStream.range(0, 16_384).boxed().collect(partitioningBy(slot -> isOnFirst(slot)));
    one.clusterAddSlots(slots.get(true).stream().mapToInt(slot -> slot).toArray());
    other.clusterAddSlots(slots.get(false).stream().mapToInt(slot -> slot).toArray());
    one.clusterMeet("127.0.0.1", port);
    for (Jedis node : new Jedis[] {one, other}) {
      while (!node.clusterInfo().contains("cluster_state:ok")
          || !node.clusterInfo().contains("cluster_known_nodes:2")) {
        Thread.sleep(20);
      }
    }
  }

  @Test
  void leasesAndMarksOnTwoNodesAndOneThatMoves() throws Exception {
    try (var first = RedisServer.start("--cluster-enabled", "yes");
        var second = RedisServer.start("--cluster-enabled", "yes");
        Jedis one = first.client();
        Jedis other = second.client()) {
      join(one, other, second.port());
      try (var client =
              RedisClusterClient.builder()
                  .nodes(Set.of(new HostAndPort("127.0.0.1", first.port())))
                  .build();
          var store = RedisStore.builder(client).build();
          Guard guard = Guard.claiming(store)) {
        for (int i = 10; i < 60; i++) {
          String id = "A" + i;
          assertNotEquals(isOnFirst(slot("bq:idemp:" + id)), isOnFirst(slot("bq:lease:" + id)));
          var ran =
              (Result.Ran)
                  guard.process(
                      envelope(id),
                      context -> {
                        assertInstanceOf(ClaimOutcome.Busy.class, store.claim(id));
                        assertTrue(context.once("count"));
                      });
          assertTrue(ran.marked());
          assertEquals(new Result.Skipped(id), guard.process(envelope(id), context -> {}));
        }
        assertEquals(100, one.dbSize() + other.dbSize(), "marks and steps, and no lease");

        String id = "moved";
        move(slot("bq:lease:" + id), one, other);
        assertThrows(StoreUnavailableException.class, () -> store.claim(id));
        assertInstanceOf(ClaimOutcome.Won.class, store.claim(id));
        move(slot("bq:once:count:" + id), one, other);
        assertThrows(StoreUnavailableException.class, () -> store.setOnce(id, "count"));
        assertTrue(store.setOnce(id, "count"));
        move(slot("bq:idemp:" + id), one, other);
        store.remember(id);
        assertTrue(store.seen(id));
      }
    }
  }

  private static int slot(String key) {
    return JedisClusterCRC16.getSlot(key);
  }

  /** Moves a slot without keys to the node that does not have it. */
  private static void move(int slot, Jedis one, Jedis other) {
    Jedis to = isOnFirst(slot) ? other : one;
    String id = to.clusterMyId();
    to.clusterSetSlotNode(slot, id);
    (to == one ? other : one).clusterSetSlotNode(slot, id);
  }
}
