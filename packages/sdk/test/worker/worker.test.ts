/** The worker of the SDK against a server that is played by the test. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type ActivityContext, ApiError, activity, NonRetryableError, Type } from "../../src/index.ts";
import type { ActivityTask, FailureView, TaskOperations, TaskPoll, WorkerReport } from "../../src/internal.ts";
import { resolveWorker } from "../../src/worker/resolved-worker.ts";
import { TaskWorker } from "../../src/worker/task-worker.ts";
import { createWorker } from "../../src/worker.ts";

const lease = 300;
const silent = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };
const unavailable = (code: "INTERNAL" | "UNREACHABLE" | "OVERLOADED" = "UNREACHABLE") => new ApiError("not now", { code });
const notHeld = () => new ApiError("not yours", { code: "TASK_NOT_HELD" });

function task(n: number, more: Partial<ActivityTask> = {}): ActivityTask {
  return {
    token: `t${n}`,
    queue: "q",
    activity: "work",
    input: n,
    attempt: 1,
    idempotencyKey: `r/${n}`,
    instanceId: "i",
    runId: "r",
    workflow: "w",
    ...more,
  };
}

/** What the server was told, and what it answers. */
class Server implements TaskOperations {
  readonly polls: TaskPoll[] = [];
  readonly completed: [token: string, output: unknown][] = [];
  readonly failed: [token: string, failure: FailureView][] = [];
  readonly released: string[] = [];
  readonly reports: WorkerReport[] = [];
  readonly heartbeats: unknown[] = [];
  waiting: ActivityTask[] = [];
  onPoll: () => Promise<void> = async () => {};
  onComplete: (token: string) => Promise<void> = async () => {};
  onFail: (token: string) => Promise<void> = async () => {};
  onHeartbeat: () => Promise<void> = async () => {};
  onReport: (report: WorkerReport) => Promise<readonly string[]> = async () => [];
  #wake: () => void = () => {};
  #told: (() => void)[] = [];

  give(...tasks: ActivityTask[]): void {
    this.waiting.push(...tasks);
    this.#wake();
  }

  /** Resolves when what the worker said makes it so. */
  async until(holds: () => boolean): Promise<void> {
    while (!holds()) await new Promise<void>((resolve) => this.#told.push(resolve));
  }

  #tell(): void {
    const told = this.#told;
    this.#told = [];
    for (const tell of told) tell();
  }

  async pollTasks(poll: TaskPoll) {
    this.polls.push(poll);
    this.#tell();
    await this.onPoll();
    if (this.waiting.length === 0)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        poll.signal?.addEventListener("abort", () => resolve(), { once: true });
      });
    return this.waiting.splice(0, poll.max);
  }

  async heartbeatTask(_token: string, { details }: { details?: unknown } = {}) {
    this.heartbeats.push(details);
    this.#tell();
    await this.onHeartbeat();
    return { lease };
  }

  async completeTask(token: string, output: unknown) {
    await this.onComplete(token);
    this.completed.push([token, output]);
    this.#tell();
    return { replayed: false };
  }

  async failTask(token: string, failure: FailureView) {
    await this.onFail(token);
    this.failed.push([token, failure]);
    this.#tell();
    return { replayed: false };
  }

  async releaseTask(token: string) {
    this.released.push(token);
    this.#tell();
  }

  async heartbeatWorker(_id: string, report: WorkerReport) {
    this.reports.push(report);
    this.#tell();
    return { lost: await this.onReport(report) };
  }

  async listWorkers() {
    return { items: [] };
  }

  async listQueues() {
    return [];
  }
}

type Body = (n: number, ctx: ActivityContext) => Promise<unknown>;

async function working(body: Body, use: (server: Server, worker: TaskWorker) => Promise<void>, concurrency = 100): Promise<void> {
  const work = activity("work", { queue: "q" }, body);
  const server = new Server();
  const resolved = resolveWorker({ activities: [work], concurrency, log: silent, lease: 1_000 }, "x");
  const worker = new TaskWorker(server, { ...resolved, lease });
  const running = worker.run();
  try {
    await use(server, worker);
  } finally {
    await worker.stop({ grace: 0 });
    await running;
  }
}

const untilAborted: Body = (_, { signal }) =>
  new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));

test("a worker asks for as many tasks as it has places, and never works on more", async () => {
  let most = 0;
  let running = 0;
  const gates: (() => void)[] = [];
  await working(
    async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise<void>((resolve) => gates.push(resolve));
      running -= 1;
    },
    async (server, worker) => {
      server.give(...[1, 2, 3, 4, 5].map((n) => task(n)));
      await server.until(() => server.reports.some(({ state }) => state === "Busy"));
      assert.deepEqual([server.polls[0]?.max, worker.state, worker.running], [2, "Busy", 2]);
      while (server.completed.length < 5) {
        for (const open of gates.splice(0)) open();
        await new Promise((resolve) => setImmediate(resolve));
      }
      assert.equal(most, 2);
    },
    2,
  );
});

test("what an activity throws is told as a failure, with its kind", async () => {
  await working(
    (n) => {
      if (n === 1) throw new NonRetryableError("no paper");
      throw Object.assign(new Error("busy"), { code: "ECONNREFUSED", tray: 2 });
    },
    async (server) => {
      server.give(task(1), task(2));
      await server.until(() => server.failed.length === 2);
      const [one, two] = server.failed.sort(([a], [b]) => a.localeCompare(b)).map(([, failure]) => failure);
      assert.deepEqual([one?.name, one?.kind], ["NonRetryableError", "permanent"]);
      assert.deepEqual([two?.message, two?.kind, two?.fields], ["busy", "infrastructure", { tray: 2 }]);
    },
  );
});

test("H061 signs of life that fail for less than the lease abort nothing; those that fail for longer abort everything before it ends", async () => {
  const reasons: Error[] = [];
  await working(
    (n, ctx) =>
      untilAborted(n, ctx).catch((error) => {
        reasons.push(error);
      }),
    async (server) => {
      let rounds = 0;
      let brokenSince = 0;
      server.give(...Array.from({ length: 50 }, (_, n) => task(n)));
      await server.until(() => server.reports.some(({ tokens = [] }) => tokens.length === 50));
      server.onReport = async () => {
        rounds += 1;
        if (rounds <= 1) throw unavailable();
        return [];
      };
      await server.until(() => rounds >= 4);
      assert.equal(reasons.length, 0);
      server.onReport = async () => {
        if (brokenSince === 0) brokenSince = performance.now();
        throw unavailable();
      };
      const before = server.reports.length;
      await server.until(() => server.reports.length >= before + 4);
      assert.equal(reasons.length, 50);
      assert.match(reasons[0]?.message ?? "", /its lease ended/);
      assert.deepEqual([server.completed, server.failed, server.released], [[], [], []]);
    },
  );
});

test("H062 a sign of life that is answered after the outcome was taken makes no task lost", async () => {
  let aborted = 0;
  const count = () => {
    aborted += 1;
  };
  const log = { ...silent, warn: count };
  const work = activity("work", { queue: "q" }, async (_: number, ctx) => {
    ctx.heartbeat();
    ctx.signal.addEventListener("abort", count);
  });
  const server = new Server();
  server.onHeartbeat = async () => {
    await new Promise((resolve) => setImmediate(resolve));
    throw notHeld();
  };
  server.onReport = async ({ tokens = [] }) => {
    await new Promise((resolve) => setImmediate(resolve));
    return tokens;
  };
  const resolved = resolveWorker({ activities: [work], concurrency: 200, log }, "x");
  const worker = new TaskWorker(server, { ...resolved, lease });
  const running = worker.run();
  server.give(...Array.from({ length: 200 }, (_, n) => task(n)));
  await server.until(() => server.completed.length === 200);
  await worker.stop();
  await running;
  assert.equal(aborted, 0);
});

test("a task that is not the worker's any more is aborted, and nothing is said of it", async () => {
  let reason: Error | undefined;
  await working(
    (n, ctx) =>
      untilAborted(n, ctx).catch((error) => {
        reason = error;
      }),
    async (server, worker) => {
      server.onReport = async ({ tokens = [] }) => tokens;
      server.give(task(1));
      await server.until(() => server.reports.some(({ tokens = [] }) => tokens.length === 1));
      while (worker.running > 0) await new Promise((resolve) => setImmediate(resolve));
      assert.match(reason?.message ?? "", /not wanted any more/);
      assert.deepEqual([server.completed, server.failed, server.released], [[], [], []]);
    },
  );
});

test("H080 an outcome that the server can never take is told as a failure; one that it cannot take now is told again", async () => {
  const tries = new Map<string, number>();
  await working(
    async (n) => n,
    async (server) => {
      server.onComplete = async (token) => {
        const count = (tries.get(token) ?? 0) + 1;
        tries.set(token, count);
        if (token === "t1") throw new ApiError("too large", { code: "BODY_TOO_LARGE" });
        if (token === "t2") throw new ApiError("malformed", { code: "MALFORMED_REQUEST" });
        if (token === "t3" && count < 3) throw unavailable("INTERNAL");
        if (token === "t4" && count < 3) throw unavailable();
        if (token === "t5") throw notHeld();
      };
      server.give(...[1, 2, 3, 4, 5].map((n) => task(n)));
      await server.until(() => server.completed.length === 2 && server.failed.length === 2);
      assert.deepEqual(server.completed.map(([token]) => token).sort(), ["t3", "t4"]);
      const failures = server.failed.map(([token, { code, kind }]) => [token, code, kind]).sort();
      assert.deepEqual(failures, [
        ["t1", "BODY_TOO_LARGE", "permanent"],
        ["t2", "MALFORMED_REQUEST", "permanent"],
      ]);
      assert.equal(tries.get("t5"), 1);
    },
  );
});

test("H080 an outcome that can never be told is left after a lease, and the worker goes on", async () => {
  await working(
    async (n) => n,
    async (server, worker) => {
      server.onComplete = async (token) => {
        if (token === "t1") throw unavailable("INTERNAL");
      };
      server.give(task(1));
      await server.until(() => server.reports.some(({ tokens = [] }) => tokens.includes("t1")));
      while (worker.running > 0) await new Promise((resolve) => setImmediate(resolve));
      server.give(task(2));
      await server.until(() => server.completed.length === 1);
      assert.deepEqual([server.completed, server.failed], [[["t2", 2]], []]);
    },
    1,
  );
});

test("a server that is away is asked again; one that refuses the worker for good ends it", async () => {
  await working(
    async (n) => n,
    async (server) => {
      let polls = 0;
      server.onPoll = async () => {
        polls += 1;
        if (polls < 3) throw unavailable(polls === 1 ? "UNREACHABLE" : "OVERLOADED");
      };
      server.give(task(1));
      await server.until(() => server.completed.length === 1);
      server.give(task(2));
      await server.until(() => server.completed.length === 2);
      assert.ok(polls >= 3, String(polls));
    },
  );
  for (const code of ["INVALID_NAME", "ROUTE_NOT_FOUND", "UNAUTHENTICATED", "FORBIDDEN"] as const) {
    const refusing = new Server();
    refusing.onPoll = async () => {
      throw new ApiError("no", { code });
    };
    const work = activity("work", { queue: "q" }, async () => {});
    const worker = new TaskWorker(refusing, resolveWorker({ activities: [work], log: silent }, "x"));
    await assert.rejects(worker.run(), (error: ApiError) => error.code === code);
    assert.equal(worker.state, "Stopped");
  }
});

test("a server that answers polls at once and with nothing is not asked in a circle", async () => {
  const server = new Server();
  let polls = 0;
  let wakeAt = 12;
  server.pollTasks = async () => {
    polls += 1;
    return polls === wakeAt ? [task(1)] : [];
  };
  const warned: string[] = [];
  const work = activity("work", { queue: "q" }, async (n: number) => n);
  const log = { ...silent, warn: (message: string) => warned.push(message) };
  const worker = new TaskWorker(server, resolveWorker({ activities: [work], log }, "x"));
  const began = performance.now();
  const running = worker.run();
  await server.until(() => server.completed.length === 1);
  // The waits of eleven answers: 50 ms twofold up to a second, each by chance between nothing and that.
  assert.ok(performance.now() - began > 100, `12 polls in ${performance.now() - began} ms`);
  assert.deepEqual(
    warned.map((message) => /answers polls at once/.test(message)),
    [true],
  );
  wakeAt = 0;
  await worker.stop();
  await running;
});

test("a worker that stops lets its tasks end, and hands back those that do not; what runs once at most has an unknown outcome", async () => {
  const gates = new Map<number, () => void>();
  const work = activity("work", { queue: "q" }, (n: number) => new Promise<void>((resolve) => gates.set(n, resolve)));
  const server = new Server();
  const worker = new TaskWorker(server, resolveWorker({ activities: [work], log: silent }, "x"));
  const running = worker.run();
  server.give(task(1), task(2), task(3, { semantics: "atMostOnce" }));
  await server.until(() => server.polls.length === 2);
  const stopped = worker.stop({ grace: "200ms" });
  assert.equal(worker.state, "Draining");
  await server.until(() => server.reports.some(({ state }) => state === "Draining"));
  gates.get(1)?.();
  await stopped;
  await running;
  assert.deepEqual([server.completed.map(([token]) => token), server.released], [["t1"], ["t2"]]);
  assert.deepEqual(
    server.failed.map(([token, { code }]) => [token, code]),
    [["t3", "OUTCOME_UNKNOWN"]],
  );
  assert.equal(server.reports.at(-1)?.state, "Stopped");
  await assert.rejects(worker.run(), /was stopped/);
});

test("what an activity tells is sent now and then, the last of it before its failure", async () => {
  await working(
    async (_, ctx) => {
      for (let row = 0; row < 1_000; row += 1) ctx.heartbeat({ row });
      throw new Error("down");
    },
    async (server) => {
      server.give(task(1, { lastHeartbeat: { row: -1 } }));
      await server.until(() => server.failed.length === 1);
      assert.deepEqual(server.heartbeats, [{ row: 999 }]);
    },
  );
});

test("the options of a worker are checked", async () => {
  const contract = activity.contract("c", { queue: "q" });
  const code = (options: object) =>
    createWorker({ url: "http://127.0.0.1:1", ...options } as never).then(
      () => "",
      (error: ApiError) => error.code,
    );
  const work = activity("work", { queue: "q" }, async () => {});
  assert.equal(await code({ activities: [] }), "INVALID_OPTION");
  assert.equal(await code({ activities: [contract] }), "INVALID_DEFINITION");
  assert.equal(await code({ activities: [work, work] }), "INVALID_DEFINITION");
  assert.equal(await code({ activities: [activity("free", async () => {})] }), "INVALID_OPTION");
  assert.equal(await code({ activities: [work], concurrency: 0 }), "INVALID_OPTION");
  assert.equal(await code({ activities: [work], lease: "1ms" }), "INVALID_OPTION");
  assert.equal(await code({ activities: [work], labels: ["no space"] }), "INVALID_OPTION");
  assert.equal(await code({ activities: [work], queues: Array.from({ length: 65 }, (_, n) => `q${n}`) }), "INVALID_OPTION");
  assert.equal(await code({ activities: [work], release: "" }), "INVALID_OPTION");
  assert.equal(await code({ activities: [work], url: "http://user:secret@host" }), "INVALID_OPTION");
  assert.throws(() => activity("t", { requires: ["gpu"] }, async () => {}), /names no queue/);
  assert.equal(await code({ activities: [work], colour: "red" }), "INVALID_OPTION");
  assert.equal(await code({ activities: [work], url: "nowhere" }), "INVALID_OPTION");
  for (const wrong of [
    { queues: "q" },
    { queues: [] },
    { log: () => {} },
    { log: 5 },
    { log: null },
    { fetch: 5 },
    { apiKey: "k\n" },
    { apiKey: 5 },
  ])
    assert.equal(await code({ activities: [work], ...wrong }), "INVALID_OPTION", JSON.stringify(wrong));
  const worker = await createWorker({ url: "http://127.0.0.1:1", activities: [work] });
  assert.throws(() => worker.stop({ gracce: 1 } as never), { code: "INVALID_OPTION", message: /gracce/ });
  assert.throws(() => activity("t", { queue: "q", semantics: "transactional" }, async () => {}), /transactional/);
  for (const limits of [{ concurrency: { limit: 1 } }, { rateLimit: { limit: 1, per: "1s" } }] as const) {
    assert.throws(() => activity("l", { queue: "q", ...limits }, async () => {}), { code: "INVALID_OPTION" });
    const limited = activity("l", limits, async () => {});
    assert.throws(() => limited().with({ queue: "q" }), { code: "INVALID_OPTION" });
  }
});

test("that a worker has begun is told at once, and not a third of a lease later", async () => {
  const server = new Server();
  const worker = new TaskWorker(
    server,
    resolveWorker({ queues: ["q"], activities: [activity("work", async () => {})], lease: "10m" }, "x"),
  );
  const running = worker.run();
  await server.until(() => server.reports.some(({ state }) => state === "Idle"));
  assert.deepEqual(
    server.reports.map(({ state }) => state),
    ["Starting", "Idle"],
  );
  await worker.stop();
  await running;
});

test("a worker says which of its activities it will hardly be given: their queue is not asked, or they require what it does not have", async () => {
  const body = async () => {};
  const warned: unknown[] = [];
  const log = { ...silent, warn: (_message: string, data?: object) => warned.push(data) };
  const activities = [
    activity("here", { queue: "q", requires: ["gpu"] }, body),
    activity("free", body),
    activity("elsewhere", { queue: "other" }, body),
    activity("demanding", { queue: "q", requires: ["gpu", "region:eu"] }, body),
  ];
  const server = new Server();
  const worker = new TaskWorker(server, resolveWorker({ activities, queues: ["q"], labels: ["gpu"], log }, "x"));
  const running = worker.run();
  await server.until(() => server.polls.length === 1);
  await worker.stop();
  await running;
  assert.deepEqual(warned, [
    { activity: "elsewhere", queue: "other", queues: ["q"] },
    { activity: "demanding", missing: ["region:eu"] },
  ]);
});

test("an activity whose schema can check nothing is not run by a worker; its task fails", async () => {
  let ran = false;
  const work = activity("work", { queue: "q", output: Type.String({ format: "of nobody" }) }, async () => {
    ran = true;
    return "x";
  });
  const server = new Server();
  const worker = new TaskWorker(server, resolveWorker({ activities: [work], log: silent }, "x"));
  const running = worker.run();
  server.give(task(1));
  await server.until(() => server.failed.length + server.completed.length === 1);
  assert.match(JSON.stringify(server.failed), /INVALID_DEFINITION/);
  assert.equal(ran, false);
  await worker.stop();
  await running;
});
