package io.github.babelqueue.guard;

/**
 * Puts the component's questions to the user's store, and its failures into the contract's words.
 */
final class Answers {
  private final Store store;

  Answers(Store store) {
    this.store = store;
  }

  Answer to(Question question) {
    try {
      return ask(question);
    } catch (GuardException classified) {
      throw classified;
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw unavailable(question, interrupted);
    } catch (Exception other) {
      throw unavailable(question, other);
    }
  }

  private Answer ask(Question question) throws Exception {
    String id = question.id();
    String argument = question.argument();
    return switch (question.kind()) {
      case SEEN -> new Answer.Yes(store.seen(id));
      case REMEMBER -> {
        store.remember(id);
        yield new Answer.Done();
      }
      case FORGET -> {
        store.forget(id);
        yield new Answer.Done();
      }
      case CLAIM -> new Answer.Claimed(answered(((Claims) store).claim(id)));
      case RENEW -> new Answer.Held(answered(((Claims) store).renew(id, argument)));
      case COMPLETE -> new Answer.Held(answered(((Claims) store).complete(id, argument)));
      case RELEASE -> new Answer.Held(answered(((Claims) store).release(id, argument)));
      case SET_ONCE -> new Answer.Yes(((Marker) store).setOnce(id, argument));
    };
  }

  private static <T> T answered(T answer) {
    if (answer == null) {
      throw new IllegalStateException("the store answered null");
    }
    return answer;
  }

  private StoreUnavailableException unavailable(Question question, Exception cause) {
    return new StoreUnavailableException(
        store.getClass().getName() + ", " + question.kind().function + ": " + cause, cause);
  }
}
