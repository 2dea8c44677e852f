package io.github.babelqueue.guard;

import io.github.babelqueue.guard.generated.Claiming;
import io.github.babelqueue.guard.generated.Plain;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.function.Function;
import run.endive.runtime.CompiledModule;
import run.endive.runtime.WasmInterruptedException;
import run.endive.wasm.types.MemoryLimits;

/**
 * The component of one world, as a pool of instances with one call an instance at a time.
 *
 * <p>A call takes microseconds and waits for nothing, so that there are never more instances than
 * threads at work. An instance whose call did not end as it should is thrown away.
 */
final class Component {
  enum World {
    PLAIN(new Plain(), false),
    CLAIMING(new Claiming(), true);

    private final CompiledModule module;
    private final boolean steps;

    World(CompiledModule module, boolean steps) {
      this.module = module;
      this.steps = steps;
    }
  }

  private static final int PAGE = 65_536;
  private static final int INITIAL_PAGES = 2;

  /** The component's stack and data, and a ticket's strings beside a body. */
  private static final int PAGES_BESIDE_BODY = 4;

  /** Guest memory never shrinks: an instance that once held a large body is not kept for small. */
  private static final int PAGES_KEPT = 32;

  private final World world;
  private final MemoryLimits limits;
  private final ArrayBlockingQueue<CoreInstance> idle =
      new ArrayBlockingQueue<>(2 * Runtime.getRuntime().availableProcessors());

  /**
   * Makes no instance yet.
   *
   * @param maxPages how far an instance's memory may grow, in pages of 64 KiB
   */
  Component(World world, int maxPages) {
    this.world = world;
    limits = new MemoryLimits(INITIAL_PAGES, maxPages);
  }

  /**
   * How many pages it takes to decide on a body of so many bytes. The component keeps a bit for
   * each level of nesting, of which there can be as many as bytes, in a list that doubles as it
   * grows.
   */
  static int pagesFor(int maxBody) {
    return PAGES_BESIDE_BODY + (int) ((maxBody * 5L / 4 + (PAGE - 1)) / PAGE);
  }

  /**
   * Runs a call in an instance of its own.
   *
   * @throws UndecidedException if it traps
   */
  <T> T call(Function<CoreInstance, T> call) {
    // The runtime throws in a thread that is interrupted. A call is over before anybody could want
    // it to stop, so it is run regardless, and the interrupt kept for whatever blocks next.
    boolean interrupted = Thread.interrupted();
    try {
      while (true) {
        CoreInstance instance = take();
        try {
          T result = call.apply(instance);
          give(instance);
          return result;
        } catch (StoreRejectedException refusal) {
          give(instance);
          throw refusal;
        } catch (WasmInterruptedException again) {
          interrupted |= Thread.interrupted();
        } catch (RuntimeException | StackOverflowError trap) {
          throw new UndecidedException(
              "the component trapped; the delivery was neither run nor skipped", trap);
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private CoreInstance take() {
    CoreInstance instance = idle.poll();
    return instance != null ? instance : new CoreInstance(world.module, limits, world.steps);
  }

  private void give(CoreInstance instance) {
    if (instance.pages() <= PAGES_KEPT) {
      idle.offer(instance);
    }
  }

  /** How much memory the idle instances hold, in pages. */
  int idlePages() {
    return idle.stream().mapToInt(CoreInstance::pages).sum();
  }

  void clear() {
    idle.clear();
  }
}
