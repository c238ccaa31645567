import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { cutSessions, type TcpProxy, tcpProxy } from "@wovyr/testing";
import postgres from "postgres";

type Peer = { readonly server: Server; readonly port: number; readonly sockets: Socket[]; next(): Promise<Socket> };

/** A server that does what the test tells its sockets to. */
async function peer(context: TestContext): Promise<Peer> {
  const sockets: Socket[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => {});
    sockets.push(socket);
    server.emit("joined", socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  context.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const next = async () => (await once(server, "joined"))[0] as Socket;
  return { server, port: (server.address() as AddressInfo).port, sockets, next };
}

type Line = { readonly client: Socket; readonly server: Socket; readonly proxy: TcpProxy };

/** A connection through a proxy, both ends in hand. */
async function line(context: TestContext): Promise<Line> {
  const there = await peer(context);
  const proxy = await tcpProxy({ host: "127.0.0.1", port: there.port });
  context.after(() => proxy.close());
  const joined = there.next();
  const client = connect({ port: proxy.port, host: "127.0.0.1", allowHalfOpen: true });
  client.on("error", () => {});
  context.after(() => client.destroy());
  return { client, server: await joined, proxy };
}

/** Resolves when a socket has closed, in whatever way. */
function closing(socket: Socket): Promise<void> {
  return new Promise((resolve) => (socket.closed ? resolve() : socket.once("close", () => resolve())));
}

/** Resolves with so many bytes of what a socket gets. */
function read(socket: Socket, length: number): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    const take = (chunk: Buffer) => {
      text += chunk.toString();
      if (text.length < length) return;
      socket.off("data", take);
      resolve(text);
    };
    socket.on("data", take);
    socket.once("close", () => reject(new Error(`closed after ${text.length} bytes`)));
  });
}

async function readAll(socket: Socket): Promise<string> {
  let text = "";
  socket.on("data", (chunk) => {
    text += chunk;
  });
  await once(socket, "end");
  return text;
}

test("bytes, and the end of them, pass in both directions", async (context) => {
  const { client, server, proxy } = await line(context);
  const question = readAll(server);
  client.end("question");
  assert.equal(await question, "question");
  const answer = readAll(client);
  server.end("x".repeat(1_000_000));
  assert.equal((await answer).length, 1_000_000, "a client that has ended still gets the whole answer");
  await Promise.all([client, server].map(closing));
  assert.equal(proxy.buffered, 0);
});

test("HTTP goes through, requests one after another and large bodies", async (context) => {
  const http = createHttpServer((request, response) => {
    if (request.url === "/large") response.end("x".repeat(3_000_000));
    else response.writeHead(200, { connection: "close" }).end(`you asked for ${request.url}`);
  });
  await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve));
  context.after(() => http.close());
  const url = `http://127.0.0.1:${(http.address() as AddressInfo).port}`;
  await using proxy = await tcpProxy(url);
  assert.equal(proxy.url(), `http://127.0.0.1:${proxy.port}`);
  assert.equal(proxy.url(`${url}/v1?a=b#c`), `http://127.0.0.1:${proxy.port}/v1?a=b#c`);
  assert.equal(await (await fetch(`${proxy.url()}/small`)).text(), "you asked for /small");
  assert.equal((await (await fetch(`${proxy.url()}/large`)).text()).length, 3_000_000);
});

test("reset ends both sides, and new connections work", async (context) => {
  const { client, server, proxy } = await line(context);
  const closed = Promise.all([closing(client), closing(server)]);
  proxy.reset();
  await closed;
  assert.equal(proxy.connections, 0);
});

test("a connection that is reset while an end is on its way leaves nothing behind in the process", async (context) => {
  const sockets = () => process.getActiveResourcesInfo().filter((kind) => kind === "TCPSocketWrap").length;
  const { client, server, proxy } = await line(context);
  const question = readAll(server);
  const gone = closing(client);
  const before = sockets();
  proxy.delay(60_000);
  const left = once(client, "finish");
  client.end("question");
  await left;
  // A few turns of the loop, and the proxy has read what left: a question that it holds, and the end behind it.
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
  assert.equal(proxy.buffered, "question".length);
  proxy.flow();
  // Both are passed on now, and the socket to the server is about to end.
  await new Promise<void>((resolve) => process.nextTick(resolve));
  proxy.reset();
  await gone;
  assert.equal(await question, "question");
  await new Promise(setImmediate);
  // What is left is the server's own socket, which has not ended.
  assert.equal(sockets(), before - 3);
});

test("a lost answer: the server has the question, and the client gets a reset", async (context) => {
  const { client, server, proxy } = await line(context);
  proxy.loseAnswers();
  const asked = read(server, 8);
  client.write("question");
  assert.equal(await asked, "question");
  let heard = 0;
  client.on("data", (chunk) => {
    heard += chunk.length;
  });
  const closed = closing(client);
  server.write("answer");
  await closed;
  assert.equal(heard, 0);
});

test("a dropped client is gone, while its server gets all that was sent and keeps its connection", async (context) => {
  const { client, server, proxy } = await line(context);
  const first = read(server, 5);
  client.write("first");
  await first;
  const closed = closing(client);
  proxy.dropClients();
  await closed;
  assert.equal(proxy.connections, 0);
  await new Promise<void>((resolve) => server.write("an answer to nobody", () => resolve()));
  assert.equal(server.destroyed, false);
  assert.equal(server.readableEnded, false);
  const ended = closing(server);
  await proxy.close();
  await ended;
});

test("a connection that brings more bytes than allowed is cut after exactly these", async (context) => {
  const { client, server, proxy } = await line(context);
  proxy.cutAfter(100_000);
  const got = readAll(server);
  const closed = closing(client);
  client.write("x".repeat(300_000));
  await closed;
  assert.equal((await got).length, 100_000);
  const joined = closing(server);
  server.end();
  await joined;
});

test("a black hole holds everything back in both directions, and what it held arrives when it flows again", async (context) => {
  const { client, server, proxy } = await line(context);
  proxy.blackhole();
  let heard = "";
  for (const socket of [client, server])
    socket.on("data", (chunk) => {
      heard += chunk;
    });
  client.write("question");
  server.write("answer");
  // A round trip over another way: what was to come would be here.
  await using other = await tcpProxy({ host: "127.0.0.1", port: proxy.port });
  const more = connect(other.port, "127.0.0.1");
  await once(more, "connect");
  assert.equal(heard, "");
  const both = Promise.all([read(server, 8), read(client, 6)]);
  proxy.flow();
  assert.deepEqual(await both, ["question", "answer"]);
  more.destroy();
});

test("a target that takes nothing stops its writer: a bounded number of bytes waits, and none is lost", async (context) => {
  const { client, server, proxy } = await line(context);
  const macrotask = () => new Promise((resolve) => setImmediate(resolve));
  // More than the kernel keeps.
  const sent = 48 * 1_048_576;
  server.pause();
  client.write(Buffer.alloc(sent));
  let most = 0;
  while (proxy.buffered < 256 * 1_024) await macrotask();
  for (let turn = 0; turn < 200; turn++) {
    most = Math.max(most, proxy.buffered);
    await macrotask();
  }
  assert.ok(client.writableLength > 1_048_576, "the client has to wait");
  let got = 0;
  const all = new Promise<void>((resolve) => {
    server.on("data", (chunk) => {
      got += chunk.length;
      most = Math.max(most, proxy.buffered);
      if (got === sent) resolve();
    });
  });
  server.resume();
  await all;
  assert.ok(most < 1_048_576, `${most} bytes waited in the proxy`);
});

test("a throttled connection carries no more bytes a second than it may, in order", async (context) => {
  const { client, server, proxy } = await line(context);
  proxy.throttle(100_000);
  const sent = Array.from({ length: 5_000 }, (_, index) => String(index).padStart(5, "0")).join("");
  const began = performance.now();
  const got = read(server, sent.length);
  client.write(sent);
  assert.equal(await got, sent);
  const took = performance.now() - began;
  assert.ok(took > 150 && took < 3_000, `25 kB at 100 kB/s took ${took} ms`);
  const rest = read(server, sent.length);
  client.write(sent);
  proxy.flow();
  assert.equal(await rest, sent);
});

test("a delay holds up each way, and keeps the order", async (context) => {
  const { client, server, proxy } = await line(context);
  proxy.delay(60);
  const began = performance.now();
  const asked = read(server, 8);
  client.write("ques");
  client.write("tion");
  assert.equal(await asked, "question");
  const answered = read(client, 6);
  server.write("answer");
  await answered;
  const took = performance.now() - began;
  assert.ok(took >= 115 && took < 3_000, `a round trip took ${took} ms`);
});

test("while it refuses nobody connects; it accepts on the same port again", async (context) => {
  const { proxy, client } = await line(context);
  const closed = closing(client);
  await proxy.refuse();
  await closed;
  await proxy.refuse();
  const { port } = proxy;
  const refused = connect(port, "127.0.0.1");
  const [error] = (await once(refused, "error")) as [NodeJS.ErrnoException];
  assert.equal(error.code, "ECONNREFUSED");
  await proxy.accept();
  await proxy.accept();
  assert.equal(proxy.port, port);
  const again = connect(port, "127.0.0.1");
  await once(again, "connect");
  again.destroy();
});

test("a target that is not there resets its clients", async (context) => {
  const there = await peer(context);
  there.server.close();
  await once(there.server, "close");
  await using proxy = await tcpProxy({ host: "localhost", port: there.port });
  const client = connect(proxy.port, "127.0.0.1");
  client.on("error", () => {});
  await closing(client);
});

test("what is wrong with a target or a number is told", async () => {
  for (const target of [
    "postgres://db.example.com:5432/x",
    "http://10.0.0.1:80",
    { host: "0.0.0.0", port: 80 },
    { host: "localhost.evil.org", port: 1 },
  ])
    await assert.rejects(
      tcpProxy(target),
      (error: Error & { code?: string }) => error.code === "INVALID_OPTION" && /loopback/.test(error.message),
    );
  for (const target of ["somewhere", "ftp://localhost/x", { host: "127.0.0.1", port: 0 }, { host: "127.0.0.1", port: 70_000 }])
    await assert.rejects(tcpProxy(target), { code: "INVALID_OPTION" });
  await using proxy = await tcpProxy({ host: "::1", port: 9 });
  assert.throws(() => proxy.url(), { code: "INVALID_OPTION" });
  for (const wrong of [-1, Number.NaN, "1" as never]) {
    assert.throws(() => proxy.delay(wrong), { code: "INVALID_OPTION" });
    assert.throws(() => proxy.throttle(wrong), { code: "INVALID_OPTION" });
    assert.throws(() => proxy.cutAfter(wrong), { code: "INVALID_OPTION" });
  }
  assert.throws(() => proxy.delay(Number.POSITIVE_INFINITY), { code: "INVALID_OPTION" });
  assert.throws(() => proxy.throttle(0), { code: "INVALID_OPTION" });
});

// ── Postgres ─────────────────────────────────────────────────────────────────────────────────────────────

const server = process.env.WOVYR_TEST_DATABASE_URL;
const needsPostgres = { skip: server === undefined ? "WOVYR_TEST_DATABASE_URL is not set: run with `npm run test:only`" : false };

function client(context: TestContext, url: string, name: string): postgres.Sql {
  const sql = postgres(url, { max: 1, onnotice: () => {}, fetch_types: false, connection: { application_name: name } });
  context.after(() => sql.end({ timeout: 0 }));
  return sql;
}

test("Postgres is reached through a proxy, and its statement survives a dropped client", needsPostgres, async (context) => {
  await using proxy = await tcpProxy(server ?? "");
  const name = `proxied_${process.pid}`;
  const [direct, observer] = [client(context, server ?? "", "direct"), client(context, server ?? "", "observer")];
  const through = client(context, proxy.url(), name);
  await direct.unsafe(`create table ${name} (n integer)`);
  await direct.begin(async (lock) => {
    await lock.unsafe(`lock table ${name} in access exclusive mode`);
    const under = assert.rejects(through.unsafe(`insert into ${name} values (1)`).execute());
    for (let waiting = 0; waiting === 0; )
      waiting = (await observer`select 1 from pg_stat_activity where application_name = ${name} and wait_event_type = 'Lock'`).length;
    proxy.dropClients();
    await under;
  });
  for (let rows = 0; rows === 0; ) rows = (await direct.unsafe(`select n from ${name}`)).length;
  assert.equal((await through`select 1 as one`)[0]?.one, 1, "the next one connects again");
  await direct.unsafe(`drop table ${name}`);
});

test("sessions are cut by the name of their application, and counted once they are gone", needsPostgres, async (context) => {
  const url = server ?? "";
  const pidOf = async (sql: postgres.Sql) => (await sql<{ pid: number }[]>`select pg_backend_pid() as pid`)[0]?.pid as number;
  const [one, two, other] = ["cut_a", "cut_a", "cut_b"].map((name) => client(context, url, name)) as [
    postgres.Sql,
    postgres.Sql,
    postgres.Sql,
  ];
  const [onePid, twoPid] = await Promise.all([one, two, other].map(pidOf));
  assert.equal(await cutSessions(url, { application: "nobody" }), 0);
  assert.equal(await cutSessions(url, { application: "cut_a", except: onePid ?? 0 }), 1);
  const left = await other<{ pid: number }[]>`select pid from pg_stat_activity where pid in ${other([onePid ?? 0, twoPid ?? 0])}`;
  assert.deepEqual(
    left.map(({ pid }) => pid),
    [onePid],
  );
  const sleeping = other`select pg_sleep(60)`.execute();
  const cut = assert.rejects(sleeping);
  for (let asleep = 0; asleep === 0; )
    asleep = (await one`select 1 from pg_stat_activity where application_name = 'cut_b' and wait_event = 'PgSleep'`).length;
  assert.equal(await cutSessions(url, { application: "cut_b" }), 1);
  await cut;
  assert.equal(await cutSessions(url, { application: "cut_a", except: ["cut_a"] }), 0);
  assert.equal(await cutSessions(url, { application: "cut_a" }), 1);
});

test("cutSessions says what is wrong with what it was given", async () => {
  await assert.rejects(cutSessions("http://localhost"), { code: "INVALID_OPTION" });
  await assert.rejects(cutSessions("postgres://localhost/x", { name: "y" } as never), { code: "INVALID_OPTION" });
});
