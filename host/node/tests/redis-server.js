// A real Redis server of the tests' own, on a free port.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { createClient } from 'redis';

export const REDIS_SERVER = process.env.REDIS_SERVER ?? 'redis-server';

export class RedisServer {
  static async start(...settings) {
    const server = new RedisServer();
    server.port = await freePort();
    server.url = `redis://127.0.0.1:${server.port}/0`;
    server.settings = settings;
    await server.up();
    return server;
  }

  async up() {
    const address = ['--bind', '127.0.0.1', '--port', String(this.port)];
    const quiet = ['--save', '', '--appendonly', 'no', '--enable-debug-command', 'yes'];
    this.process = spawn(REDIS_SERVER, [...address, ...quiet, ...this.settings], {
      stdio: 'ignore',
    });
    const { process: child } = this;
    process.once('exit', () => child.kill('SIGKILL'));
    let failure;
    this.process.on('error', (error) => (failure = error));
    for (let tries = 0; tries < 100 && failure === undefined; tries++) {
      const raw = createClient({ url: this.url, socket: { reconnectStrategy: false } });
      raw.on('error', () => undefined);
      try {
        await raw.connect();
        this.raw = raw;
        return;
      } catch (error) {
        if (/NOAUTH|WRONGPASS/.test(error.message)) return;
        await sleep(50);
      }
    }
    throw failure ?? new Error(`${REDIS_SERVER} did not start`);
  }

  /** A command of a client that knows nothing of the guard. */
  command(...command) {
    return this.raw.sendCommand(command.map(String));
  }

  async keys() {
    return (await this.command('KEYS', '*')).sort();
  }

  signal(name) {
    this.process.kill(name);
  }

  async stop() {
    if (this.raw?.isOpen) this.raw.destroy();
    if (this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = once(this.process, 'exit');
    this.process.kill('SIGKILL');
    await ended;
  }
}

export async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}
