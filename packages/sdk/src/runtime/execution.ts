/**
 * One run's generators, driven by the facts of its history: facts in, commands out.
 *
 * 1. Pure: no clock, no I/O, no randomness but the run's seed. Time is the time of the turn.
 * 2. Facts are delivered one at a time, in history order; after each, fibers are stepped one at a time, first in first out, until all are blocked.
 * 3. Replaying a turn asks for exactly the commands that it recorded (recorder.ts); the first difference stops the execution for good.
 * 4. Between two steps only microtasks run. A step that has not ended when they have drained awaits something that is no effect: whoever drives the
 *    execution then calls `stuck()`.
 * 5. An execution that was dropped (evicted, refused, diverged) is never entered again; its generators are not closed, so no `finally` runs.
 */

import { parse, type Schema } from "../define/schema.ts";
import type { WorkflowContext } from "../define/workflow-context.ts";
import type { WorkflowDefinition } from "../define/workflow-definition.ts";
import type { AnyEffect } from "../effects/any-effect.ts";
import { maxBranches } from "../effects/branches.ts";
import { type Branch, type CallSite, Effect } from "../effects/effect.ts";
import { Task } from "../effects/task.ts";
import { digest } from "../model/digest.ts";
import {
	ActivityError,
	AuthoringError,
	CancelledError,
	DeterminismError,
	TimeoutError,
	WorkflowError,
	type WorkflowOutcome,
	WovyrError,
} from "../model/errors.ts";
import { errorOf, type Failure, failureOf } from "../model/failure.ts";
import type {
	Command,
	EffectId,
	HistoryFact,
	Incoming,
	Payload,
	TimerPurpose,
	Turn,
} from "../model/history.ts";
import {
	decodePayload,
	defaultPayloadLimit,
	encodePayload,
} from "../model/payload.ts";
import { lineOf } from "./call-site.ts";
import {
	allPolicy,
	anyPolicy,
	racePolicy,
	settledPolicy,
	tolerantPolicy,
} from "./combinators.ts";
import { createContext, type Tracked } from "./context.ts";
import { type BufferedEvent, EventBuffer } from "./event-buffer.ts";
import { Fiber } from "./fiber.ts";
import { Group } from "./group.ts";
import { type Leaf, Leaves } from "./leaf.ts";
import {
	closedOperation,
	type Done,
	fulfilled,
	type Operation,
	type Outcome,
	rejected,
} from "./operation.ts";
import { type Divergence, divergenceError, Recorder } from "./recorder.ts";
import { SeededRandom } from "./seeded-random.ts";
import { TaskState } from "./task.ts";

export type LogLevel = "debug" | "info" | "warn" | "error";
export type LogLine = {
	readonly level: LogLevel;
	readonly message: string;
	readonly data?: object | undefined;
};

export type ExecutionLimits = {
	/** Bytes of one encoded value. */
	readonly payload: number;
	/** Bytes of all values that one turn records. */
	readonly turn: number;
	/** Events of one run. */
	readonly history: number;
	/** Milliseconds that the clean-up of a cancelled branch may take. */
	readonly cleanup: number;
};

export const defaultLimits: ExecutionLimits = {
	payload: defaultPayloadLimit,
	turn: 32 * 1024 * 1024,
	history: 100_000,
	cleanup: 60_000,
};

export type ExecutionOptions = {
	readonly definition: WorkflowDefinition;
	readonly tenant: string;
	readonly run: string;
	/** A fresh run id for a child; asked for only when the effect is new. */
	readonly newRunId: () => string;
	readonly limits?: ExecutionLimits;
};

type StartFact = Extract<Incoming, { type: "InstanceStarted" }>;

export type Closing = Extract<
	Command,
	{
		type:
			| "InstanceCompleted"
			| "InstanceFailed"
			| "InstanceCancelled"
			| "InstanceTerminated";
	}
>;

export class Execution {
	readonly definition: WorkflowDefinition;
	readonly tenant: string;
	readonly run: string;
	readonly limits: ExecutionLimits;
	/** The reason that is given to whatever is closed because its surroundings ended. */
	readonly closing = new CancelledError(
		"no longer needed: what it belonged to has ended",
	);
	readonly leaves = new Leaves((leaf) =>
		this.#record({ type: "EffectCancelled", effect: leaf.id }),
	);
	readonly #newRunId: () => string;
	/** Called when the execution becomes idle after `deliver` or `replayNext` left it busy. */
	onIdle: () => void = () => {};
	readonly #recorder = new Recorder();
	readonly #events = new EventBuffer();
	readonly #tasks = new Map<EffectId, TaskState>();
	readonly #usedIds = new Set<string>();
	#ready: Fiber[] = [];
	#readyHead = 0;
	#stepping: Fiber | undefined;
	#draining = false;
	#root: Fiber | undefined;
	#variables: Tracked | undefined;
	#attributes: Tracked | undefined;
	#now = 0;
	#historyLength = 0;
	#turnBytes = 0;
	#closed: Closing | undefined;
	#cancelling = false;
	#broken: Error | undefined;
	#logs: LogLine[] = [];
	#gotSite: CallSite | undefined;

	constructor(options: ExecutionOptions) {
		this.definition = options.definition;
		this.tenant = options.tenant;
		this.run = options.run;
		this.limits = options.limits ?? defaultLimits;
		this.#newRunId = options.newRunId;
	}

	/** Whether fibers are still being stepped; `onIdle` follows. */
	get busy(): boolean {
		return (
			this.#broken === undefined &&
			(this.#stepping !== undefined || this.#readyHead < this.#ready.length)
		);
	}

	/** Set when the execution can go no further: the code diverged from history or awaited what is no effect. */
	get broken(): Error | undefined {
		return this.#broken;
	}

	get closed(): Closing | undefined {
		return this.#closed;
	}

	get stepping(): Fiber | undefined {
		return this.#stepping;
	}

	get cleanupTimeout(): number {
		return this.limits.cleanup;
	}

	/** Number of events in history, this turn's included. */
	get historyLength(): number {
		return this.#historyLength + this.#recorder.length;
	}

	/** Starts a turn; `at` is the time of its events. */
	beginTurn(at: number): void {
		this.#now = at;
		this.#turnBytes = 0;
	}

	/** Applies one incoming fact of the turn that is being made. */
	deliver(fact: Incoming): void {
		this.#recorder.incoming(fact);
		this.#apply(fact);
		this.#drain();
	}

	/** The facts recorded since they were last taken, in order. Only when idle. */
	takeFacts(): HistoryFact[] {
		const facts = this.#recorder.take();
		this.#historyLength += facts.length;
		return facts;
	}

	/** Ends the turn: records what the workflow changed in its variables; take the facts once more. */
	endTurn(): void {
		this.#recordTracked();
	}

	/** Lines that the workflow logged since they were last taken. */
	takeLogs(): LogLine[] {
		if (this.#logs.length === 0) return [];
		const logs = this.#logs;
		this.#logs = [];
		return logs;
	}

	/** Begins to replay a recorded turn; go on with `replayNext` whenever idle, until it returns false. */
	beginReplay(turn: Turn): void {
		this.#now = turn.at;
		this.#recorder.beginReplay(turn);
	}

	replayNext(): boolean {
		if (this.#broken !== undefined) return false;
		const fact = this.#recorder.nextIncoming();
		if (this.#recorder.divergence !== undefined) {
			this.#diverge(this.#recorder.divergence);
			return false;
		}
		if (fact === undefined) return false;
		this.#apply(fact as Incoming);
		this.#drain();
		return true;
	}

	endReplay(turn: Turn): void {
		this.#recorder.endReplay();
		this.#historyLength += turn.events.length;
		this.#variables?.takeChange();
		this.#attributes?.takeChange();
	}

	/** The microtasks have drained and a step has not ended: its generator awaits something that is no effect. */
	stuck(): void {
		const fiber = this.#stepping;
		if (fiber === undefined) return;
		const site = this.siteText(
			fiber.lastSite,
			"The last effect before it was yielded at",
		);
		this.#break(
			new DeterminismError(
				`Workflow "${this.definition.name}" awaited something that is no effect (a promise of a fetch, a timer, a file …). Put it into an activity or a step: \`yield* step("name", async () => …)\`.${site}`,
				{
					code: "FOREIGN_AWAIT",
					site:
						fiber.lastSite === undefined ? undefined : lineOf(fiber.lastSite),
				},
			),
		);
	}

	/** `file:line:column` of every yield that the run waits at, in the order in which the effects were asked for. */
	waitingAt(): string[] {
		const lines: string[] = [];
		for (const leaf of this.leaves.values()) {
			const line = leaf.site === undefined ? undefined : lineOf(leaf.site);
			if (line !== undefined && !lines.includes(line)) lines.push(line);
		}
		return lines;
	}

	// ── for fibers and operations ──────────────────────────────────────────────────────────────────────────

	enqueue(fiber: Fiber): void {
		this.#ready.push(fiber);
	}

	/** A fiber's step ended. False when the execution was broken meanwhile: the fiber stays where it is. */
	stepped(fiber: Fiber): boolean {
		if (this.#stepping === fiber) this.#stepping = undefined;
		return this.#broken === undefined;
	}

	/** Steps the next fiber, or reports that all are blocked. */
	pump(): void {
		if (this.#draining) return;
		this.#drain();
		if (!this.busy) this.onIdle();
	}

	/** Starts a yielded effect. `done` may be called before this returns. */
	begin(
		effect: Effect<unknown>,
		id: EffectId | undefined,
		fiber: Fiber,
		done: Done,
	): Operation {
		if (
			!this.#recorder.replaying &&
			this.historyLength >= this.limits.history
		) {
			done(
				rejected(
					new WovyrError(
						`This run has recorded ${this.limits.history} events, the limit. Split its work into children.`,
						{
							code: "HISTORY_TOO_LONG",
						},
					),
				),
			);
			return closedOperation;
		}
		const known = effect as AnyEffect;
		switch (known.kind) {
			case "activity":
				return this.#activity(known, id, fiber, done);
			case "sleep":
				return this.#sleep(known, id ?? fiber.nextId(), done);
			case "event":
				return this.#event(known, id ?? fiber.nextId(), done);
			case "child":
				return this.#child(known, id ?? fiber.nextId(), done);
			case "sideEffect":
				return this.#sideEffect(known, id ?? fiber.nextId(), done);
			case "all":
			case "settled":
			case "any":
			case "race":
				return this.#combinator(known, id ?? fiber.nextId(), fiber, done);
			case "map":
				return this.#map(known, id ?? fiber.nextId(), fiber, done);
			case "select":
				return this.#select(known, id ?? fiber.nextId(), fiber, done);
			case "timeout":
				return this.#timeout(known, id ?? fiber.nextId(), fiber, done);
			case "spawn":
				return this.#spawn(known, id ?? fiber.nextId(), fiber, done);
			case "task":
				return this.#join(known, done);
			case "cancelTask":
				return this.#cancelTask(known, done);
			default:
				known satisfies never;
				done(
					rejected(
						new AuthoringError(
							`This version of the engine does not know the effect "${effect.kind}".`,
							"FOREIGN_YIELD",
						),
					),
				);
				return closedOperation;
		}
	}

	startBranch(
		make: () => Branch,
		id: EffectId,
		fiber: Fiber,
		done: Done,
	): Operation {
		let branch: unknown;
		try {
			branch = make();
			if (typeof branch === "function") branch = branch();
		} catch (error) {
			done(rejected(error));
			return closedOperation;
		}
		if (branch instanceof Effect) return this.begin(branch, id, fiber, done);
		if (isGenerator(branch)) return new Fiber(this, id, branch, done);
		done(
			rejected(
				new AuthoringError(
					`Branch ${id} is neither an effect nor an async generator, nor a function that returns one. Write it as \`async function* () { … }\`.`,
					"FOREIGN_YIELD",
				),
			),
		);
		return closedOperation;
	}

	/** A timer of the runtime's own; `fired` is not called when it is abandoned. */
	timer(
		id: EffectId,
		purpose: TimerPurpose,
		delay: number,
		fired: () => void,
	): Operation {
		return this.#timerAt(id, purpose, this.#now + delay, undefined, fired);
	}

	log(level: LogLevel, message: string, data?: object): void {
		if (!this.#recorder.replaying) this.#logs.push({ level, message, data });
	}

	logLoser(branch: EffectId, error: unknown): void {
		if (!(error instanceof CancelledError))
			this.log("warn", `branch ${branch} failed after its group was decided`, {
				branch,
				error,
			});
	}

	siteText(site: CallSite | undefined, lead: string): string {
		const line = site === undefined ? undefined : lineOf(site);
		return line === undefined ? "" : ` ${lead} ${line}.`;
	}

	// ── stepping ───────────────────────────────────────────────────────────────────────────────────────────

	#drain(): void {
		this.#draining = true;
		while (this.#stepping === undefined && this.#broken === undefined) {
			const fiber = this.#ready[this.#readyHead];
			if (fiber === undefined) {
				this.#clearReady();
				break;
			}
			this.#readyHead += 1;
			this.#stepping = fiber;
			fiber.step();
		}
		this.#draining = false;
		if (this.#stepping === undefined && this.#broken === undefined)
			this.#checkTracked();
	}

	#clearReady(): void {
		if (this.#ready.length > 0) this.#ready = [];
		this.#readyHead = 0;
	}

	#break(error: Error): void {
		this.#broken ??= error;
		this.#clearReady();
		this.#stepping = undefined;
	}

	#diverge(divergence: Divergence): void {
		const site =
			this.#gotSite === undefined ? undefined : lineOf(this.#gotSite);
		this.#break(divergenceError(divergence, this.definition.name, site));
	}

	#record<C extends Command>(command: C, site?: CallSite): C {
		const recorded = this.#recorder.command(command);
		const divergence = this.#recorder.divergence;
		if (divergence !== undefined && this.#broken === undefined) {
			this.#gotSite = site ?? this.#stepping?.lastSite;
			this.#diverge(divergence);
		}
		return recorded;
	}

	// ── incoming facts ─────────────────────────────────────────────────────────────────────────────────────

	#apply(fact: Incoming): void {
		switch (fact.type) {
			case "InstanceStarted":
				this.#started(fact);
				return;
			case "ActivityCompleted":
			case "ChildCompleted":
				this.#leaf(fact)?.settle(this.#decoded(fact.output));
				return;
			case "ActivityFailed":
				if (fact.retryAt === undefined) this.#activityFailed(fact);
				return;
			case "ChildFailed":
				this.#childFailed(
					fact.effect,
					fact.status as WorkflowOutcome,
					fact.failure,
				);
				return;
			case "ChildRejected":
				this.#leaf(fact)?.settle(rejected(errorOf(fact.failure)));
				return;
			case "TimerFired":
				this.#leaf(fact)?.settle(fulfilled(undefined));
				return;
			case "EventReceived":
				this.#eventReceived(fact);
				return;
			case "CancelRequested":
				this.#cancel(
					fact.mode,
					new CancelledError(fact.reason ?? "cancelled on request"),
				);
				return;
			case "TerminateRequested":
				this.#terminate(fact.reason);
				return;
			case "AttemptStarted":
			case "AttemptLost":
			case "Parked":
			case "Resumed":
				return;
			default:
				fact satisfies never;
		}
	}

	#leaf(fact: { readonly effect: EffectId }): Leaf | undefined {
		return this.leaves.get(fact.effect);
	}

	#started(fact: StartFact): void {
		if (fact.startAt !== undefined && fact.startAt > this.#now) {
			this.#timerAt("start", "start", fact.startAt, undefined, () =>
				this.#enter(fact),
			);
			return;
		}
		this.#enter(fact);
	}

	#enter(fact: StartFact): void {
		const run = this.definition.run;
		if (run === undefined) {
			this.#close(
				rejected(
					new AuthoringError(
						`Workflow "${this.definition.name}" is a contract without an implementation.`,
						"INVALID_DEFINITION",
					),
				),
			);
			return;
		}
		let generator: unknown;
		try {
			generator = run(
				decodePayload(fact.input) as never,
				this.#context(fact) as never,
			);
		} catch (error) {
			this.#close(rejected(error));
			return;
		}
		if (!isGenerator(generator)) {
			this.#close(
				rejected(
					new AuthoringError(
						`Workflow "${this.definition.name}" did not return an async generator: write it as \`async function* (input, ctx) { … }\`.`,
						"INVALID_DEFINITION",
					),
				),
			);
			return;
		}
		this.#root = new Fiber(this, "", generator, (outcome) =>
			this.#close(outcome),
		);
	}

	#context(fact: StartFact): WorkflowContext {
		const random = new SeededRandom(fact.seed);
		const { context, variables, attributes } = createContext({
			id: fact.id,
			runId: this.run,
			tenant: this.tenant,
			correlationId: fact.correlationId ?? fact.id,
			variables: this.definition.variables?.() ?? {},
			attributes:
				fact.attributes === undefined
					? {}
					: (decodePayload(fact.attributes) as Record<string, unknown>),
			memo:
				fact.memo === undefined
					? {}
					: (decodePayload(fact.memo) as Record<string, unknown>),
			now: () => this.#now,
			random: () => random.fraction(),
			uuid: () => random.uuid(),
			historyLength: () => this.historyLength,
			log: (level, message, data) => this.log(level, message, data),
		});
		this.#variables = variables;
		this.#attributes = attributes;
		return context;
	}

	#decoded(payload: Payload): Outcome {
		try {
			return fulfilled(decodePayload(payload));
		} catch (error) {
			return rejected(error);
		}
	}

	#activityFailed(fact: Extract<Incoming, { type: "ActivityFailed" }>): void {
		const leaf = this.#leaf(fact);
		if (leaf?.work.kind !== "activity") return;
		const { definition } = leaf.work.effect;
		const cause = errorOf(fact.failure, [
			...(definition.errors ?? []),
			...(this.definition.errors ?? []),
		]);
		const attempts =
			fact.attempt === 1 ? "1 attempt" : `${fact.attempt} attempts`;
		leaf.settle(
			rejected(
				new ActivityError(
					`activity "${definition.name}" failed after ${attempts}: ${fact.failure.message}`,
					{
						activity: definition.name,
						attempts: fact.attempt,
						cause,
					},
				),
			),
		);
	}

	#childFailed(
		effect: EffectId,
		status: WorkflowOutcome,
		failure: Failure,
	): void {
		const leaf = this.leaves.get(effect);
		if (leaf?.work.kind !== "child") return;
		const { workflow } = leaf.work.effect;
		const cause = errorOf(failure, [
			...(workflow.errors ?? []),
			...(this.definition.errors ?? []),
		]);
		leaf.settle(
			rejected(
				new WorkflowError(
					`child workflow "${workflow.name}" (${leaf.work.childId}) ended as ${status}: ${failure.message}`,
					{
						instanceId: leaf.work.childId,
						workflow: workflow.name,
						status,
						cause,
					},
				),
			),
		);
	}

	#eventReceived(fact: BufferedEvent): void {
		for (const leaf of this.leaves.values()) {
			if (
				leaf.work.kind !== "event" ||
				leaf.work.effect.event.name !== fact.name
			)
				continue;
			const offer = this.#offer(leaf.work.effect, fact);
			if (offer === undefined) continue;
			leaf.settle(this.#consume(leaf.id, fact, offer));
			return;
		}
		this.#events.add(fact);
	}

	/** What a wait makes of an event: its value, the error of its `match`, or nothing when it does not want it. */
	#offer(
		wait: Extract<AnyEffect, { kind: "event" }>,
		event: BufferedEvent,
	): Outcome | undefined {
		let value: unknown;
		try {
			value = parse(
				wait.event.schema,
				decodePayload(event.payload),
				`payload of event "${event.name}"`,
			);
		} catch (error) {
			this.log(
				"warn",
				`event "${event.name}" does not fit what the workflow awaits and stays in the buffer`,
				{ event: event.name, error },
			);
			return undefined;
		}
		if (wait.match === undefined) return fulfilled(value);
		try {
			return wait.match(value) ? fulfilled(value) : undefined;
		} catch (error) {
			return rejected(error);
		}
	}

	/** Records that a wait took an event, with what its schema made of it, so that a replay sees the same value. */
	#consume(
		effect: EffectId,
		event: BufferedEvent,
		offer: Outcome,
		site?: CallSite,
	): Outcome {
		try {
			const value = offer.ok
				? this.#encode(offer.value, `payload of event "${event.name}"`)
				: event.payload;
			const command = this.#record(
				{
					type: "EventConsumed",
					effect,
					message: event.message,
					...(value !== event.payload && { value }),
				},
				site,
			);
			return offer.ok ? this.#decoded(command.value ?? event.payload) : offer;
		} catch (error) {
			this.#record(
				{ type: "EventConsumed", effect, message: event.message },
				site,
			);
			return rejected(error);
		}
	}

	#cancel(mode: "graceful" | "immediate", reason: CancelledError): void {
		if (this.#closed !== undefined) return;
		this.#cancelling = true;
		if (mode === "graceful" && this.#root !== undefined) {
			this.#root.cancel(reason);
			return;
		}
		this.#abandonAll();
		this.#closeWith({ type: "InstanceCancelled", failure: failureOf(reason) });
	}

	#terminate(reason: string | undefined): void {
		if (this.#closed !== undefined) return;
		this.#abandonAll();
		this.#closeWith({
			type: "InstanceTerminated",
			failure: failureOf(
				new WovyrError(reason ?? "terminated on request", {
					code: "TERMINATED",
				}),
			),
		});
	}

	#abandonAll(): void {
		this.#clearReady();
		this.#root?.abandon();
		for (const leaf of [...this.leaves.values()]) leaf.abandon();
	}

	// ── the end ────────────────────────────────────────────────────────────────────────────────────────────

	#close(outcome: Outcome): void {
		if (this.#broken !== undefined || this.#closed !== undefined) return;
		if (this.#cancelling) {
			const error = outcome.ok ? new CancelledError() : outcome.error;
			this.#closeWith({ type: "InstanceCancelled", failure: failureOf(error) });
			return;
		}
		if (!outcome.ok) {
			this.#closeWith({
				type: "InstanceFailed",
				failure: failureOf(outcome.error),
			});
			return;
		}
		try {
			const value = parse(
				this.definition.output,
				outcome.value,
				`output of workflow "${this.definition.name}"`,
			);
			this.#closeWith({
				type: "InstanceCompleted",
				output: this.#encode(
					value,
					`output of workflow "${this.definition.name}"`,
				),
			});
		} catch (error) {
			this.#closeWith({ type: "InstanceFailed", failure: failureOf(error) });
		}
	}

	#closeWith(command: Closing): void {
		for (const leaf of [...this.leaves.values()]) leaf.abandon();
		this.#closed = this.#record(command);
	}

	/** After each fact: what the workflow keeps in its variables must be storable, now and on every replay. */
	#checkTracked(): void {
		if (this.#closed !== undefined) return;
		try {
			this.#variables?.check(this.limits.payload);
			this.#attributes?.check(this.limits.payload);
		} catch (error) {
			this.#abandonAll();
			this.#closeWith({ type: "InstanceFailed", failure: failureOf(error) });
		}
	}

	#recordTracked(): void {
		const variables = this.#variables?.takeChange();
		if (variables !== undefined)
			this.#record({ type: "VariablesChanged", variables });
		const attributes = this.#attributes?.takeChange();
		if (attributes !== undefined)
			this.#record({ type: "AttributesChanged", attributes });
	}

	// ── effects ────────────────────────────────────────────────────────────────────────────────────────────

	#encode(value: unknown, what: string): Payload {
		const payload = encodePayload(value, { limit: this.limits.payload, what });
		this.#turnBytes += payload.length;
		if (this.#turnBytes > this.limits.turn && !this.#recorder.replaying)
			throw new WovyrError(
				`One turn would record more than ${this.limits.turn} bytes. Start fewer effects at once, or pass references instead of large values.`,
				{ code: "TURN_TOO_LARGE" },
			);
		return payload;
	}

	/**
	 * The recorded form of an input: what its schema makes of it, and the digest of what the code passed. A replay that meets its digest again neither
	 * parses nor encodes (a schema may fill in the time of day); any other does, so that it fails as it did.
	 */
	#input(
		effect: EffectId,
		schema: Schema | undefined,
		given: unknown,
		what: string,
	): { input: Payload; digest: string } {
		const key = digest(given);
		return {
			input: this.#recorder.expects(effect, key)
				? ""
				: this.#encode(parse(schema, given, what), what),
			digest: key,
		};
	}

	#activity(
		effect: Extract<AnyEffect, { kind: "activity" }>,
		given: EffectId | undefined,
		fiber: Fiber,
		done: Done,
	): Operation {
		const { definition, options } = effect;
		try {
			const id = this.#customId(options.id) ?? given ?? fiber.nextId();
			const command = this.#record(
				{
					type: "ActivityScheduled",
					effect: id,
					name: definition.name,
					...this.#input(
						id,
						definition.input,
						effect.input,
						`input of activity "${definition.name}"`,
					),
					...(options.summary !== undefined && { summary: options.summary }),
				},
				effect.site,
			);
			return this.leaves.open(
				command.effect,
				{ kind: "activity", effect },
				effect.site,
				done,
			);
		} catch (error) {
			done(rejected(error));
			return closedOperation;
		}
	}

	/** Effect ids that users choose live apart from positional ones, and each is used once in a run. */
	#customId(id: string | undefined): EffectId | undefined {
		if (id === undefined) return undefined;
		if (this.#usedIds.has(id))
			throw new AuthoringError(
				`The effect id "${id}" is used twice in one run. Leave \`id\` out, or make it unique.`,
				"INVALID_OPTION",
			);
		this.#usedIds.add(id);
		return `@${id}`;
	}

	#sleep(
		effect: Extract<AnyEffect, { kind: "sleep" }>,
		id: EffectId,
		done: Done,
	): Operation {
		return this.#timerAt(
			id,
			"sleep",
			effect.until ?? this.#now + (effect.delay ?? 0),
			effect.site,
			done,
		);
	}

	#timerAt(
		id: EffectId,
		purpose: TimerPurpose,
		due: number,
		site: CallSite | undefined,
		done: Done,
	): Operation {
		this.#record({ type: "TimerStarted", effect: id, purpose, due }, site);
		return this.leaves.open(id, { kind: "timer", purpose }, site, done);
	}

	#event(
		effect: Extract<AnyEffect, { kind: "event" }>,
		id: EffectId,
		done: Done,
	): Operation {
		this.#record(
			{ type: "EventAwaited", effect: id, name: effect.event.name },
			effect.site,
		);
		let offered: Outcome | undefined;
		const buffered = this.#events.take(effect.event.name, (event) => {
			offered = this.#offer(effect, event);
			return offered !== undefined;
		});
		if (buffered !== undefined && offered !== undefined) {
			done(this.#consume(id, buffered, offered, effect.site));
			return closedOperation;
		}
		if (effect.timeout === undefined)
			return this.leaves.open(id, { kind: "event", effect }, effect.site, done);
		const { name } = effect.event;
		const after = effect.timeout;
		const wait = this.leaves.open(
			id,
			{ kind: "event", effect },
			effect.site,
			(outcome) => {
				timer.abandon();
				done(outcome);
			},
		);
		const timer = this.timer(`${id}!timeout`, "timeout", after, () => {
			if (this.leaves.close(wait)) {
				this.#record({ type: "EffectCancelled", effect: id });
				done(
					rejected(
						new TimeoutError(
							`event "${name}" did not arrive within ${after} ms`,
							"wait",
						),
					),
				);
			}
		});
		return {
			cancel: (reason) => wait.cancel(reason),
			abandon: () => {
				wait.abandon();
				timer.abandon();
			},
		};
	}

	#child(
		effect: Extract<AnyEffect, { kind: "child" }>,
		id: EffectId,
		done: Done,
	): Operation {
		const { workflow } = effect;
		try {
			const run = this.#recorder.replaying ? "" : this.#newRunId();
			const command = this.#record(
				{
					type: "ChildStarted",
					effect: id,
					workflow: workflow.name,
					version: workflow.version,
					id: effect.id ?? run,
					run,
					...this.#input(
						id,
						workflow.input,
						effect.input,
						`input of workflow "${workflow.name}"`,
					),
					onParentClose: effect.onParentClose,
				},
				effect.site,
			);
			return this.leaves.open(
				id,
				{ kind: "child", effect, childId: command.id },
				effect.site,
				done,
			);
		} catch (error) {
			done(rejected(error));
			return closedOperation;
		}
	}

	#sideEffect(
		effect: Extract<AnyEffect, { kind: "sideEffect" }>,
		id: EffectId,
		done: Done,
	): Operation {
		try {
			const value = this.#recorder.replaying
				? ""
				: this.#encode(effect.fn(), "value of a side effect");
			const command = this.#record(
				{ type: "SideEffectRecorded", effect: id, value },
				effect.site,
			);
			if (this.#broken === undefined) done(this.#decoded(command.value));
		} catch (error) {
			done(rejected(error));
		}
		return closedOperation;
	}

	#combinator(
		effect: Extract<AnyEffect, { kind: "all" | "settled" | "any" | "race" }>,
		id: EffectId,
		fiber: Fiber,
		done: Done,
	): Operation {
		const { branches, keys, kind } = effect;
		const size = branches.length;
		const refusal = refuseSize(kind, size);
		if (refusal !== undefined) {
			done(rejected(refusal));
			return closedOperation;
		}
		const policy =
			kind === "all"
				? allPolicy(size, keys)
				: kind === "settled"
					? settledPolicy(size, keys)
					: kind === "any"
						? anyPolicy(size, keys)
						: racePolicy(keys);
		return started(
			new Group(
				fiber,
				id,
				size,
				(index) => branches[index] as Branch,
				policy,
				done,
			),
		);
	}

	#select(
		effect: Extract<AnyEffect, { kind: "select" }>,
		id: EffectId,
		fiber: Fiber,
		done: Done,
	): Operation {
		const refusal = refuseSize("select", effect.tasks.length);
		if (refusal !== undefined) {
			done(rejected(refusal));
			return closedOperation;
		}
		return started(
			new Group(
				fiber,
				id,
				effect.tasks.length,
				(index) => effect.tasks[index] as Branch,
				racePolicy(effect.keys),
				done,
			),
		);
	}

	#map(
		effect: Extract<AnyEffect, { kind: "map" }>,
		id: EffectId,
		fiber: Fiber,
		done: Done,
	): Operation {
		const items = effect.items;
		const size = items.length;
		const refusal = refuseSize("map", size);
		if (refusal !== undefined) {
			done(rejected(refusal));
			return closedOperation;
		}
		const failures = tolerated(effect, size);
		const policy =
			failures === undefined
				? allPolicy(size, undefined)
				: tolerantPolicy(size, failures);
		return started(
			new Group(
				fiber,
				id,
				size,
				(index) => effect.fn(items[index], index),
				policy,
				done,
				effect.concurrency ?? size,
			),
		);
	}

	#timeout(
		effect: Extract<AnyEffect, { kind: "timeout" }>,
		id: EffectId,
		fiber: Fiber,
		done: Done,
	): Operation {
		let late: TimeoutError | undefined;
		let timer: Operation = closedOperation;
		let settled = false;
		const branch = this.startBranch(
			() => effect.branch as Branch,
			`${id}.0`,
			fiber,
			(outcome) => {
				settled = true;
				timer.abandon();
				done(late === undefined ? outcome : rejected(late));
			},
		);
		if (!settled)
			timer = this.timer(`${id}!timeout`, "timeout", effect.after, () => {
				late = new TimeoutError(
					`what timeout() covers took longer than ${effect.after} ms`,
					"scope",
				);
				branch.cancel(this.closing);
			});
		return {
			cancel: (reason) => branch.cancel(reason),
			abandon: () => {
				branch.abandon();
				timer.abandon();
			},
		};
	}

	#spawn(
		effect: Extract<AnyEffect, { kind: "spawn" }>,
		id: EffectId,
		fiber: Fiber,
		done: Done,
	): Operation {
		const task = new TaskState(id);
		this.#tasks.set(id, task);
		fiber.own(task);
		task.operation = this.startBranch(
			() => effect.branch as Branch,
			`${id}.0`,
			fiber,
			(outcome) => task.settle(outcome),
		);
		done(fulfilled(new Task(id, this)));
		return closedOperation;
	}

	#taskOf(handle: Task<unknown>): TaskState {
		const task = handle.owner === this ? this.#tasks.get(handle.id) : undefined;
		if (task === undefined)
			throw new AuthoringError(
				`Task ${handle.id} belongs to another instance. A task can be joined and cancelled only by the run that spawned it; use an event or a child to wait for other instances.`,
				"FOREIGN_TASK",
			);
		return task;
	}

	#join(handle: Task<unknown>, done: Done): Operation {
		try {
			return this.#taskOf(handle).join(done);
		} catch (error) {
			done(rejected(error));
			return closedOperation;
		}
	}

	#cancelTask(
		effect: Extract<AnyEffect, { kind: "cancelTask" }>,
		done: Done,
	): Operation {
		try {
			const task = this.#taskOf(effect.task);
			if (!task.closed) {
				const closed = { waiting: true };
				task.whenClosed(() => {
					if (closed.waiting) done(fulfilled(undefined));
				});
				task.operation.cancel(
					new CancelledError(effect.reason ?? "the task was cancelled"),
				);
				const stop = () => {
					closed.waiting = false;
				};
				return {
					cancel: (reason) => {
						if (!closed.waiting || task.closed) return;
						stop();
						done(rejected(reason));
					},
					abandon: stop,
				};
			}
			done(fulfilled(undefined));
		} catch (error) {
			done(rejected(error));
		}
		return closedOperation;
	}
}

function started(group: Group): Group {
	group.start();
	return group;
}

function refuseSize(kind: string, size: number): Error | undefined {
	if (size > maxBranches)
		return new AuthoringError(
			`${kind}() was given ${size} branches; the limit is ${maxBranches}. Work through the list in batches, or give each batch to a child.`,
			"TOO_MANY_BRANCHES",
		);
	if (size === 0 && (kind === "race" || kind === "select"))
		return new AuthoringError(
			`${kind}() of no branches would wait for ever.`,
			"INVALID_OPTION",
		);
	return undefined;
}

/** How many branches of a map may fail; undefined when none may. */
function tolerated(
	effect: Extract<AnyEffect, { kind: "map" }>,
	size: number,
): number | undefined {
	const { minSuccess, tolerateFailures } = effect;
	if (minSuccess === undefined && tolerateFailures === undefined)
		return undefined;
	const byPercent =
		tolerateFailures?.percent === undefined
			? size
			: Math.floor((size * tolerateFailures.percent) / 100);
	return Math.min(
		tolerateFailures?.count ?? size,
		byPercent,
		size - (minSuccess ?? 0),
	);
}

function isGenerator(
	value: unknown,
): value is AsyncGenerator<unknown, unknown, unknown> {
	return (
		typeof value === "object" &&
		value !== null &&
		Symbol.asyncIterator in value &&
		"next" in value &&
		"throw" in value
	);
}
