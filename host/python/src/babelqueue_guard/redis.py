"""Stores on Redis or Valkey, over redis-py. Needs ``babelqueue-guard[redis]``.

Redis 6.2 or later, or any Valkey. Marks are shared with consumers in other languages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

try:
    import redis
    import redis.asyncio
    from redis.backoff import NoBackoff
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        "the stores on Redis need redis-py: pip install 'babelqueue-guard[redis]'",
        name=missing.name,
    ) from missing

from . import settings
from ._redis_wire import RAW, Command, Wire, claimed, failure, new_token, unanswered
from .errors import StoreError
from .types import ClaimOutcome, Lease

T = TypeVar("T")

#: Of the clients that are made here. What takes longer is `unavailable`.
CONNECT_TIMEOUT_S = 2.0
RESPONSE_TIMEOUT_S = 5.0

#: With RESP3, where notifications may come at any time, redis-py does not look whether a
#: connection has ended before it uses it; and a step is sent once.
_PROTOCOL = 2

#: How long a claim that came to nothing is given to hand back what it may have taken.
_GIVE_BACK_S = 2.0


class RedisStore:
    """Marks, leases and steps on Redis, for :class:`~babelqueue_guard.Guard`.

    ``client`` is a ``redis.Redis`` of yours, with the timeouts that you gave it;
    :meth:`from_url` makes one. Thread-safe as the client is.

    ``name`` is the consumer's, ``[a-z0-9_]{1,24}``. Two different consumers of one
    message need two names, or the first one's mark makes the second skip. Two with the
    same name, or none, share their marks: that is how the copies of one consumer, in any
    language, do.

    ``retention_ms`` is how long a mark is kept (14 days; ``None`` for ever), ``lease_ms``
    how long a claim lasts unless it is renewed (60 s). ``prefix`` begins every key.

    Raises ``ValueError`` for a setting that cannot be. The methods raise
    :class:`~babelqueue_guard.StoreUnavailable` when Redis cannot be reached or refuses
    for a while, and :class:`~babelqueue_guard.StoreRejected` when an operator has to act.
    What is not answered is sent once more; but for a step, which is sent once.
    """

    def __init__(
        self,
        client: redis.Redis,
        *,
        prefix: str = "bq:",
        name: str | None = None,
        retention_ms: int | None = settings.RETENTION_MS,
        lease_ms: int = settings.LEASE_MS,
    ) -> None:
        if not isinstance(client, redis.Redis):
            raise TypeError(f"RedisStore takes a redis.Redis, not {type(client).__name__}")
        self._client = client
        self._wire = Wire(prefix, name, retention_ms, lease_ms)

    @classmethod
    def from_url(cls, url: str, **settings: Any) -> RedisStore:
        """A store with a client of its own: ``redis://``, ``rediss://`` or ``unix://``.

        Connecting may take two seconds and a reply five. The settings are those of the
        class. :meth:`close` ends the client's connections.
        """
        client = redis.Redis.from_url(
            url,
            socket_connect_timeout=CONNECT_TIMEOUT_S,
            socket_timeout=RESPONSE_TIMEOUT_S,
            # The store sends once more by itself, where that is right.
            retry=redis.retry.Retry(NoBackoff(), 0),
            protocol=_PROTOCOL,
        )
        return cls(client, **settings)

    def close(self) -> None:
        """Ends the client's connections."""
        self._client.close()

    def seen(self, id: str) -> bool:
        """Whether the id has a mark."""
        return self._send(self._wire.seen(id)) is not None

    def remember(self, id: str) -> None:
        """Sets the mark, or restarts its retention."""
        self._send(self._wire.remember(id))

    def forget(self, id: str) -> None:
        """Removes the mark. A lease is not touched."""
        self._send(self._wire.forget(id))

    def claim(self, id: str) -> ClaimOutcome:
        """Takes the lease, unless there is a mark or another's live lease."""
        token = new_token()
        commands = self._wire.claim(id, token)
        won = False
        ours = True
        try:
            replies = self._pipeline(commands)
            outcome, ours = claimed(commands, replies, token, self._wire.lease_ms)
            if isinstance(outcome, StoreError):
                raise outcome
            won = isinstance(outcome, Lease)
            return outcome
        finally:
            # Also if no reply came, or an interrupt instead of it.
            if ours and not won:
                self._give_back(id, token)

    def renew(self, id: str, token: str) -> bool:
        """Extends our own live lease; whether it was still ours."""
        return bool(self._send(self._wire.renew(id, token)) == 1)

    def complete(self, id: str, token: str) -> bool:
        """Sets the mark in any case, and drops the lease if it is ours; whether it was."""
        commands = self._wire.complete(id, token)
        marked, dropped = self._pipeline(commands)
        if isinstance(marked, Exception):
            raise failure(commands[0], marked)
        # The mark is what counts; a lease that could not be dropped lapses.
        return bool(dropped == 1)

    def release(self, id: str, token: str) -> bool:
        """Drops the lease if it is ours; whether it was."""
        return bool(self._send(self._wire.release(id, token)) == 1)

    def set_once(self, id: str, step: str) -> bool:
        """Sets the mark of one step; whether this call set it. Sent once."""
        command = self._wire.set_once(id, step)
        pool = self._client.connection_pool
        try:
            # Past the client, which would send again what was not answered.
            connection = pool.get_connection()
            try:
                connection.send_command(*command)
                reply = connection.read_response(disable_decoding=True)
            finally:
                pool.release(connection)
        except Exception as error:
            raise self._failure(command, error) from error
        if reply is not None:
            return True
        # Something is there: an earlier call's mark, or what the server refuses to read.
        self._send(self._wire.step(id, step))
        return False

    def _send(self, command: Command) -> Any:
        try:
            try:
                return self._client.execute_command(*command, **RAW)
            except Exception as error:
                if not unanswered(error):
                    raise
                return self._client.execute_command(*command, **RAW)
        except Exception as error:
            raise self._failure(command, error) from error

    def _pipeline(self, commands: list[Command]) -> list[Any]:
        try:
            try:
                return self._pipeline_once(commands)
            except Exception as error:
                if not unanswered(error):
                    raise
                return self._pipeline_once(commands)
        except Exception as error:
            raise self._failure(commands[0], error) from error

    def _pipeline_once(self, commands: list[Command]) -> list[Any]:
        with self._client.pipeline(transaction=False) as pipeline:
            for command in commands:
                pipeline.execute_command(*command, **RAW)
            replies = pipeline.execute(raise_on_error=False)
        for reply in replies:
            if isinstance(reply, redis.exceptions.ReadOnlyError):
                self._drop_connections()
        return replies

    def _give_back(self, id: str, token: str) -> None:
        try:
            self._client.execute_command(*self._wire.release(id, token), **RAW)
        except Exception:
            # It lapses by itself; why the claim failed says more.
            return

    def _failure(self, command: Command, error: Exception) -> StoreError:
        if isinstance(error, redis.exceptions.ReadOnlyError):
            self._drop_connections()
        return failure(command, error)

    def _drop_connections(self) -> None:
        """After a failover they lead to what was the primary, for as long as they live."""
        self._client.connection_pool.disconnect(inuse_connections=False)


class AsyncRedisStore:
    """The :class:`RedisStore` for :class:`~babelqueue_guard.AsyncGuard`.

    ``client`` is a ``redis.asyncio.Redis``. A claim that is cancelled gives back what it
    may have taken before the cancellation goes on.
    """

    def __init__(
        self,
        client: redis.asyncio.Redis,
        *,
        prefix: str = "bq:",
        name: str | None = None,
        retention_ms: int | None = settings.RETENTION_MS,
        lease_ms: int = settings.LEASE_MS,
    ) -> None:
        if not isinstance(client, redis.asyncio.Redis):
            raise TypeError(
                f"AsyncRedisStore takes a redis.asyncio.Redis, not {type(client).__name__}"
            )
        self._client = client
        self._wire = Wire(prefix, name, retention_ms, lease_ms)

    @classmethod
    def from_url(cls, url: str, **settings: Any) -> AsyncRedisStore:
        """As :meth:`RedisStore.from_url`."""
        client = redis.asyncio.Redis.from_url(
            url,
            socket_connect_timeout=CONNECT_TIMEOUT_S,
            socket_timeout=RESPONSE_TIMEOUT_S,
            retry=redis.asyncio.retry.Retry(NoBackoff(), 0),
            protocol=_PROTOCOL,
        )
        return cls(client, **settings)

    async def aclose(self) -> None:
        """Ends the client's connections."""
        await self._client.aclose()

    async def seen(self, id: str) -> bool:
        """As :meth:`RedisStore.seen`."""
        return await self._send(self._wire.seen(id)) is not None

    async def remember(self, id: str) -> None:
        """As :meth:`RedisStore.remember`."""
        await self._send(self._wire.remember(id))

    async def forget(self, id: str) -> None:
        """As :meth:`RedisStore.forget`."""
        await self._send(self._wire.forget(id))

    async def claim(self, id: str) -> ClaimOutcome:
        """As :meth:`RedisStore.claim`."""
        token = new_token()
        commands = self._wire.claim(id, token)
        won = False
        ours = True
        try:
            replies = await self._pipeline(commands)
            outcome, ours = claimed(commands, replies, token, self._wire.lease_ms)
            if isinstance(outcome, StoreError):
                raise outcome
            won = isinstance(outcome, Lease)
            return outcome
        finally:
            if ours and not won:
                await self._give_back(id, token)

    async def renew(self, id: str, token: str) -> bool:
        """As :meth:`RedisStore.renew`."""
        return bool(await self._send(self._wire.renew(id, token)) == 1)

    async def complete(self, id: str, token: str) -> bool:
        """As :meth:`RedisStore.complete`."""
        commands = self._wire.complete(id, token)
        marked, dropped = await self._pipeline(commands)
        if isinstance(marked, Exception):
            raise failure(commands[0], marked)
        return bool(dropped == 1)

    async def release(self, id: str, token: str) -> bool:
        """As :meth:`RedisStore.release`."""
        return bool(await self._send(self._wire.release(id, token)) == 1)

    async def set_once(self, id: str, step: str) -> bool:
        """As :meth:`RedisStore.set_once`."""
        command = self._wire.set_once(id, step)
        pool = self._client.connection_pool
        try:
            connection = await pool.get_connection()
            try:
                await connection.send_command(*command)
                reply = await connection.read_response(disable_decoding=True)
            except BaseException:
                # Whoever had it next would read this reply.
                await connection.disconnect(nowait=True)
                raise
            finally:
                await pool.release(connection)
        except Exception as error:
            raise await self._failure(command, error) from error
        if reply is not None:
            return True
        await self._send(self._wire.step(id, step))
        return False

    async def _send(self, command: Command) -> Any:
        try:
            try:
                return await self._client.execute_command(*command, **RAW)
            except Exception as error:
                if not unanswered(error):
                    raise
                return await self._client.execute_command(*command, **RAW)
        except Exception as error:
            raise await self._failure(command, error) from error

    async def _pipeline(self, commands: list[Command]) -> list[Any]:
        try:
            try:
                return await self._pipeline_once(commands)
            except Exception as error:
                if not unanswered(error):
                    raise
                return await self._pipeline_once(commands)
        except Exception as error:
            raise await self._failure(commands[0], error) from error

    async def _pipeline_once(self, commands: list[Command]) -> list[Any]:
        async with self._client.pipeline(transaction=False) as pipeline:
            for command in commands:
                pipeline.execute_command(*command, **RAW)
            replies = await pipeline.execute(raise_on_error=False)
        for reply in replies:
            if isinstance(reply, redis.exceptions.ReadOnlyError):
                await self._drop_connections()
        return replies

    async def _give_back(self, id: str, token: str) -> None:
        release = self._client.execute_command(*self._wire.release(id, token), **RAW)
        await _shielded(release)

    async def _failure(self, command: Command, error: Exception) -> StoreError:
        if isinstance(error, redis.exceptions.ReadOnlyError):
            await self._drop_connections()
        return failure(command, error)

    async def _drop_connections(self) -> None:
        await self._client.connection_pool.disconnect(inuse_connections=False)


async def _shielded(awaitable: Awaitable[Any]) -> None:
    """Waits a short while for something whose failure does not matter."""
    try:
        await asyncio.wait_for(asyncio.shield(awaitable), _GIVE_BACK_S)
    except Exception:
        # It lapses by itself; why the claim failed says more.
        return
