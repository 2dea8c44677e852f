package io.github.babelqueue.guard;

import io.github.babelqueue.guard.Question.Kind;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import run.endive.runtime.ByteArrayMemory;
import run.endive.runtime.CompiledModule;
import run.endive.runtime.ExportFunction;
import run.endive.runtime.HostFunction;
import run.endive.runtime.ImportFunction;
import run.endive.runtime.ImportValues;
import run.endive.runtime.Instance;
import run.endive.runtime.Memory;
import run.endive.wasm.types.FunctionType;
import run.endive.wasm.types.MemoryLimits;
import run.endive.wasm.types.ValType;

/**
 * One instance of the core module, called by the canonical ABI.
 *
 * <p>An import does no more than note what is asked and give the answer that is known, or supposed.
 * So no store, and none of its exceptions, ever meets a frame of the component. Nothing here guards
 * against two calls at once: {@link Component} does.
 */
final class CoreInstance {
  /** What a call returned, and what it asked on the way; null if nothing. */
  record Reply<T>(T value, Question asked) {}

  private static final int OK = 0;
  private static final String GUARD = "babelqueue:guard/guard@0.1.0#";
  private static final String STEPS = "babelqueue:guard/steps@0.1.0#";

  /** An exported function, and the one that frees its result. */
  private record Export(ExportFunction call, ExportFunction post) {}

  private final Memory memory;
  private final ExportFunction realloc;
  private final Export decide;
  private final Export decideId;
  private final Export settle;
  private final Export renew;
  private final Export forget;

  /** Null in the world without steps. */
  private final Export once;

  private Answer known;
  private Question asked;

  CoreInstance(CompiledModule module, MemoryLimits limits, boolean steps) {
    Instance instance =
        Instance.builder(module.wasmModule())
            .withMachineFactory(module.machineFactory())
            .withMemoryFactory(ByteArrayMemory::new)
            .withMemoryLimits(limits)
            .withImportValues(ImportValues.builder().withFunctions(imports()).build())
            .build();
    memory = instance.memory();
    realloc = instance.export("cabi_realloc");
    decide = export(instance, GUARD + "decide");
    decideId = export(instance, GUARD + "decide-id");
    settle = export(instance, GUARD + "settle");
    renew = export(instance, GUARD + "renew");
    forget = export(instance, GUARD + "forget");
    once = steps ? export(instance, STEPS + "once") : null;
  }

  private static Export export(Instance instance, String name) {
    return new Export(instance.export(name), instance.export("cabi_post_" + name));
  }

  int pages() {
    return memory.pages();
  }

  // ---- calls ------------------------------------------------------------------------------

  Reply<Decision> decide(Answer answer, byte[] body) {
    return call(decide, answer, this::readDecision, lower(body), body.length);
  }

  Reply<Decision> decideId(Answer answer, byte[] id) {
    return call(decideId, answer, this::readDecision, lower(id), id.length);
  }

  Reply<Settled> settle(Answer answer, Ticket ticket, boolean succeeded) {
    long[] arguments = lower(ticket, 1);
    arguments[6] = succeeded ? 0 : 1;
    return call(settle, answer, result -> Settled.values()[memory.read(result + 4)], arguments);
  }

  Reply<Hold> renew(Answer answer, Ticket ticket) {
    long[] arguments = lower(ticket, 0);
    return call(renew, answer, result -> Hold.values()[memory.read(result + 4)], arguments);
  }

  Reply<Void> forget(Answer answer, byte[] id) {
    return call(forget, answer, result -> null, lower(id), id.length);
  }

  Reply<Boolean> once(Answer answer, Ticket ticket, String step) {
    long[] arguments = lower(ticket, 2);
    byte[] name = Wtf8.encode(step);
    arguments[6] = lower(name);
    arguments[7] = name.length;
    return call(once, answer, result -> memory.read(result + 4) != 0, arguments);
  }

  private interface Reader<T> {
    T read(int result);
  }

  /** Every function returns a {@code result}, so where it lies in memory. */
  private <T> Reply<T> call(Export function, Answer answer, Reader<T> reader, long... arguments) {
    known = answer;
    asked = null;
    int result = (int) function.call.apply(arguments)[0];
    StoreRejectedException refusal = memory.read(result) == OK ? null : refusal(result);
    T value = refusal == null ? reader.read(result) : null;
    function.post.apply(result);
    if (refusal != null) {
      throw refusal;
    }
    return new Reply<>(value, asked);
  }

  // ---- passing values in --------------------------------------------------------------------

  /** The callee frees what is passed to it, so that nothing here is kept for the next call. */
  private int lower(byte[] bytes) {
    int address = (int) realloc.apply(0, 0, 1, bytes.length)[0];
    memory.write(address, bytes);
    return address;
  }

  /** A ticket takes six values, followed by room for some more. */
  private long[] lower(Ticket ticket, int more) {
    long[] values = new long[6 + more];
    if (ticket instanceof Ticket.Open open) {
      values[1] = open.reason().ordinal();
    } else if (ticket instanceof Ticket.Seen seen) {
      values[0] = 1;
      lower(seen.id(), values, 1);
    } else if (ticket instanceof Ticket.Leased leased) {
      values[0] = 2;
      lower(leased.id(), values, 1);
      lower(leased.token(), values, 3);
      values[5] = leased.lengthMillis();
    }
    return values;
  }

  private void lower(String text, long[] values, int at) {
    byte[] bytes = Wtf8.encode(text);
    values[at] = lower(bytes);
    values[at + 1] = bytes.length;
  }

  // ---- reading values -----------------------------------------------------------------------

  private Decision readDecision(int result) {
    int payload = result + 16;
    return switch (memory.read(result + 8)) {
      case 0 -> new Decision.Run(readTicket(payload));
      case 1 -> new Decision.Skip(readString(payload));
      default -> new Decision.Park(readString(payload), memory.readLong(payload + 8));
    };
  }

  private Ticket readTicket(int ticket) {
    int payload = ticket + 8;
    return switch (memory.read(ticket)) {
      case 0 -> new Ticket.Open(FailOpen.values()[memory.read(payload)]);
      case 1 -> new Ticket.Seen(readString(payload));
      default ->
          new Ticket.Leased(
              readString(payload), readString(payload + 8), memory.readLong(payload + 16));
    };
  }

  private String readString(int at) {
    return readString(memory.readInt(at), memory.readInt(at + 4));
  }

  private String readString(int address, int length) {
    return new String(memory.readBytes(address, length), StandardCharsets.UTF_8);
  }

  /** A store's failure never goes in, so what comes out is what the component itself refuses. */
  private StoreRejectedException refusal(int result) {
    return new StoreRejectedException(readString(result + 8));
  }

  // ---- imports --------------------------------------------------------------------------------

  private List<ImportFunction> imports() {
    List<ImportFunction> functions = new ArrayList<>();
    for (Kind kind : Kind.values()) {
      int parameters = kind.hasArgument ? 5 : 3;
      functions.add(
          new HostFunction(
              kind.module,
              kind.function,
              FunctionType.of(Collections.nCopies(parameters, ValType.I32), List.of()),
              (instance, values) -> {
                answer(kind, values);
                return null;
              }));
    }
    return functions;
  }

  private void answer(Kind kind, long[] values) {
    String id = readString((int) values[0], (int) values[1]);
    String argument = kind.hasArgument ? readString((int) values[2], (int) values[3]) : null;
    asked = new Question(kind, id, argument);
    write(known == null ? kind.supposed : known, (int) values[values.length - 1]);
  }

  private void write(Answer answer, int result) {
    memory.writeByte(result, (byte) OK);
    if (answer instanceof Answer.Yes yes) {
      memory.writeByte(result + 4, (byte) (yes.yes() ? 1 : 0));
    } else if (answer instanceof Answer.Held held) {
      memory.writeByte(result + 4, (byte) held.hold().ordinal());
    } else if (answer instanceof Answer.Claimed claimed) {
      write(claimed.outcome(), result + 8);
    }
  }

  private void write(ClaimOutcome outcome, int at) {
    int payload = at + 8;
    if (outcome instanceof ClaimOutcome.Won won) {
      byte[] token = Wtf8.encode(won.token());
      memory.writeByte(at, (byte) 0);
      memory.writeI32(payload, lower(token));
      memory.writeI32(payload + 4, token.length);
      memory.writeLong(payload + 8, won.lengthMillis());
    } else if (outcome instanceof ClaimOutcome.Busy busy) {
      memory.writeByte(at, (byte) 1);
      memory.writeLong(payload, busy.leftMillis());
    } else {
      memory.writeByte(at, (byte) 2);
    }
  }
}
