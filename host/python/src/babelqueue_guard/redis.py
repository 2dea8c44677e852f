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
from ._redis_wire import (
    RAW,
    Command,
    Wire,
    claimed,
    concerns,
    failure,
    new_token,
    still_held,
    unanswered,
)
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

    ``client`` is a ``redis.Redis`` or ``redis.RedisCluster`` of yours, with the timeouts
    that you gave it; :meth:`from_url` makes one. Thread-safe as the client is. One that
    caches replies, or asks replicas, is refused.

    ``name`` is the consumer's, ``[a-z0-9_]{1,24}``. Two different consumers of one
    message need two names, or the first one's mark makes the second skip. Two with the
    same name, or none, share their marks: that is how the copies of one consumer, in any
    language, do.

    ``retention_ms`` is how long a mark is kept (14 days; ``None`` for ever, with which
    steps are rejected), ``lease_ms`` how long a claim lasts unless it is renewed (60 s).
    ``prefix`` begins every key.

    Raises ``ValueError`` for a setting that cannot be. The methods raise
    :class:`~babelqueue_guard.StoreUnavailable` when Redis cannot be reached or refuses
    for a while, and :class:`~babelqueue_guard.StoreRejected` when an operator has to act.
    What is not answered is sent once more; but for a step, which is sent once.
    """

    def __init__(
        self,
        client: redis.Redis | redis.RedisCluster,
        *,
        prefix: str = "bq:",
        name: str | None = None,
        retention_ms: int | None = settings.RETENTION_MS,
        lease_ms: int = settings.LEASE_MS,
    ) -> None:
        self._client: Any = client
        self._cluster = client if isinstance(client, redis.RedisCluster) else None
        if self._cluster is None and not isinstance(client, redis.Redis):
            raise TypeError(
                "RedisStore takes a redis.Redis or redis.RedisCluster, "
                f"not {type(client).__module__}.{type(client).__name__}"
            )
        _refuse_stale_replies(client)
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
        lease, mark = self._wire.claim(id, token), [self._wire.seen(id)]
        won = False
        ours = True
        try:
            replies = self._pipeline(lease, mark)
            outcome, ours = claimed([*lease, *mark], replies, token, self._wire.lease_ms)
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
        mark, release = self._wire.remember(id), self._wire.release(id, token)
        marked, dropped = self._pipeline([mark], [release])
        if isinstance(marked, Exception):
            raise failure(mark, marked)
        return still_held(dropped)

    def release(self, id: str, token: str) -> bool:
        """Drops the lease if it is ours; whether it was."""
        return bool(self._send(self._wire.release(id, token)) == 1)

    def set_once(self, id: str, step: str) -> bool:
        """Sets the mark of one step; whether this call set it. Sent once.

        Raises :class:`~babelqueue_guard.StoreRejected` if marks are kept for ever.
        """
        command = self._wire.set_once(id, step)
        try:
            reply = self._send_once(command)
        except Exception as error:
            raise self._failure(command, error) from error
        if reply is not None:
            return True
        # Something is there: an earlier call's mark, or what the server refuses to read.
        self._send(self._wire.step(id, step))
        return False

    def concerns(self) -> list[str]:
        """What an operator should know of the server, to be looked at when a consumer starts.

        A sentence if it may evict keys; of a cluster, its nodes are not asked.
        """
        if self._cluster is not None:
            return []
        return concerns(self._send(("INFO", "memory")))

    def _send_once(self, command: Command) -> Any:
        """Past the client, which would send again what was not answered."""
        node = self._client
        if self._cluster is not None:
            node = self._cluster.get_redis_connection(self._cluster.get_node_from_key(command[1]))
        pool = node.connection_pool
        connection = pool.get_connection()
        try:
            connection.send_command(*command)
            return connection.read_response(disable_decoding=True)
        finally:
            pool.release(connection)

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

    def _pipeline(self, first: list[Command], second: list[Command]) -> list[Any]:
        """Sends two groups of commands, each about one key, the first one first."""
        if self._cluster is None:
            return self._exchange(first + second)
        # Their keys may be on two nodes, which wait for nobody.
        return self._exchange(first) + self._exchange(second)

    def _exchange(self, commands: list[Command]) -> list[Any]:
        try:
            try:
                return self._exchange_once(commands)
            except Exception as error:
                if not unanswered(error):
                    raise
                return self._exchange_once(commands)
        except Exception as error:
            raise self._failure(commands[0], error) from error

    def _exchange_once(self, commands: list[Command]) -> list[Any]:
        with self._client.pipeline(transaction=False) as pipeline:
            for command in commands:
                pipeline.execute_command(*command, **RAW)
            replies: list[Any] = pipeline.execute(raise_on_error=False)
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
        if self._cluster is not None:
            self._cluster.disconnect_connection_pools()
        else:
            self._client.connection_pool.disconnect(inuse_connections=False)


class AsyncRedisStore:
    """The :class:`RedisStore` for :class:`~babelqueue_guard.AsyncGuard`.

    ``client`` is a ``redis.asyncio.Redis`` or ``RedisCluster``. A claim that is cancelled
    gives back what it may have taken before the cancellation goes on.
    """

    def __init__(
        self,
        client: redis.asyncio.Redis | redis.asyncio.RedisCluster,
        *,
        prefix: str = "bq:",
        name: str | None = None,
        retention_ms: int | None = settings.RETENTION_MS,
        lease_ms: int = settings.LEASE_MS,
    ) -> None:
        self._client: Any = client
        self._cluster = client if isinstance(client, redis.asyncio.RedisCluster) else None
        if self._cluster is None and not isinstance(client, redis.asyncio.Redis):
            raise TypeError(
                "AsyncRedisStore takes a redis.asyncio.Redis or redis.asyncio.RedisCluster, "
                f"not {type(client).__module__}.{type(client).__name__}"
            )
        _refuse_stale_replies(client)
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
        lease, mark = self._wire.claim(id, token), [self._wire.seen(id)]
        won = False
        ours = True
        try:
            replies = await self._pipeline(lease, mark)
            outcome, ours = claimed([*lease, *mark], replies, token, self._wire.lease_ms)
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
        mark, release = self._wire.remember(id), self._wire.release(id, token)
        marked, dropped = await self._pipeline([mark], [release])
        if isinstance(marked, Exception):
            raise failure(mark, marked)
        return still_held(dropped)

    async def release(self, id: str, token: str) -> bool:
        """As :meth:`RedisStore.release`."""
        return bool(await self._send(self._wire.release(id, token)) == 1)

    async def set_once(self, id: str, step: str) -> bool:
        """As :meth:`RedisStore.set_once`."""
        command = self._wire.set_once(id, step)
        try:
            reply = await self._send_once(command)
        except Exception as error:
            raise await self._failure(command, error) from error
        if reply is not None:
            return True
        await self._send(self._wire.step(id, step))
        return False

    async def concerns(self) -> list[str]:
        """As :meth:`RedisStore.concerns`."""
        if self._cluster is not None:
            return []
        return concerns(await self._send(("INFO", "memory")))

    async def _send_once(self, command: Command) -> Any:
        """Past the client, which would send again what was not answered."""
        if self._cluster is not None:
            await self._cluster.initialize()
            node: Any = self._cluster.get_node_from_key(command[1])
            return await node.execute_command(*command, **RAW)
        pool = self._client.connection_pool
        connection = await pool.get_connection()
        try:
            await connection.send_command(*command)
            return await connection.read_response(disable_decoding=True)
        except BaseException:
            # Whoever had it next would read this reply.
            await connection.disconnect(nowait=True)
            raise
        finally:
            await pool.release(connection)

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

    async def _pipeline(self, first: list[Command], second: list[Command]) -> list[Any]:
        """Sends two groups of commands, each about one key, the first one first."""
        if self._cluster is None:
            return await self._exchange(first + second)
        # Their keys may be on two nodes, which wait for nobody.
        return await self._exchange(first) + await self._exchange(second)

    async def _exchange(self, commands: list[Command]) -> list[Any]:
        try:
            try:
                return await self._exchange_once(commands)
            except Exception as error:
                if not unanswered(error):
                    raise
                return await self._exchange_once(commands)
        except Exception as error:
            raise await self._failure(commands[0], error) from error

    async def _exchange_once(self, commands: list[Command]) -> list[Any]:
        async with self._client.pipeline(transaction=False) as pipeline:
            for command in commands:
                pipeline.execute_command(*command, **RAW)
            replies: list[Any] = await pipeline.execute(raise_on_error=False)
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
        if self._cluster is not None:
            # It connects anew when it is used next.
            await self._cluster.aclose()
        else:
            await self._client.connection_pool.disconnect(inuse_connections=False)


def _refuse_stale_replies(client: Any) -> None:
    """A mark that is there and not seen would make its message run again."""
    if getattr(client, "get_cache", lambda: None)() is not None:
        raise ValueError("client must not cache replies: it would not see new marks")
    for setting in ("read_from_replicas", "load_balancing_strategy"):
        if getattr(client, setting, None):
            raise ValueError(f"client must not have {setting}: replicas lag behind")


async def _shielded(awaitable: Awaitable[Any]) -> None:
    """Waits a short while for something whose failure does not matter."""
    try:
        await asyncio.wait_for(asyncio.shield(awaitable), _GIVE_BACK_S)
    except Exception:
        # It lapses by itself; why the claim failed says more.
        return
