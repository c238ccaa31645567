/**
 * The workflow definitions that this node hosts: by name, then by version.
 *
 * 1. Names that begin with `wovyr:` are the engine's own: users register none, and lists do not show them.
 */
import { WovyrError } from "@wovyr/sdk";
import type { EventDef, WorkflowDefinition } from "@wovyr/sdk/internal";
import { batchWorkflow } from "./batch-workflow.ts";

const ownPrefix = "wovyr:";

/** Whether a workflow is one of the engine's own. */
export const isOwnWorkflow = (name: string): boolean => name.startsWith(ownPrefix);

/** How nodes tell each other of a workflow. */
export const workflowLabel = (name: string, version: string): string => `${name}@${version}`;

export class Registry {
  readonly #workflows = new Map<string, Map<string, WorkflowDefinition>>();
  /** By name, the version for new instances. */
  readonly #last = new Map<string, WorkflowDefinition>();
  readonly #own = new Map<string, WorkflowDefinition>([[batchWorkflow.name, batchWorkflow.definition]]);

  constructor(definitions: readonly WorkflowDefinition[]) {
    for (const definition of definitions) {
      if (isOwnWorkflow(definition.name))
        throw new WovyrError(
          `workflow "${definition.name}" has a name of the engine's own: choose one that does not begin with "${ownPrefix}"`,
          {
            code: "INVALID_DEFINITION",
          },
        );
      if (definition.run === undefined)
        throw new WovyrError(
          `workflow "${definition.name}" is a contract without an implementation: register what \`.implement(async function* …)\` returned`,
          { code: "INVALID_DEFINITION" },
        );
      const versions = this.#workflows.get(definition.name) ?? new Map<string, WorkflowDefinition>();
      if (versions.has(definition.version))
        throw new WovyrError(
          `two workflows are registered as "${definition.name}" version "${definition.version}": give one of them another name or version`,
          { code: "INVALID_DEFINITION" },
        );
      versions.set(definition.version, definition);
      this.#workflows.set(definition.name, versions);
      this.#last.set(definition.name, definition);
    }
  }

  get names(): readonly string[] {
    return [...this.#workflows.keys()];
  }

  /** All that can be run here, the engine's own among them. */
  get labels(): readonly string[] {
    const all = [...this.#own.values(), ...[...this.#workflows.values()].flatMap((versions) => [...versions.values()])];
    return all.map(({ name, version }) => workflowLabel(name, version));
  }

  /** The first of those whose concurrent runs are limited. */
  get limited(): WorkflowDefinition | undefined {
    return [...this.#workflows.values()].flatMap((versions) => [...versions.values()]).find(({ concurrency }) => concurrency !== undefined);
  }

  find(name: string, version: string): WorkflowDefinition | undefined {
    const own = this.#own.get(name);
    return own?.version === version ? own : this.#workflows.get(name)?.get(version);
  }

  /** Every version, the one for new instances last. Throws WORKFLOW_NOT_FOUND. */
  versions(name: string): readonly WorkflowDefinition[] {
    const versions = this.#workflows.get(name);
    if (versions !== undefined) return [...versions.values()];
    const known = this.names;
    throw new WovyrError(
      `No workflow "${name}" is registered here. ${known.length === 0 ? "None is registered." : `Registered: ${known.slice(0, 20).join(", ")}${known.length > 20 ? ", …" : ""}.`}`,
      { code: "WORKFLOW_NOT_FOUND" },
    );
  }

  /** As `forStart`, and undefined where that throws. */
  ifStarted(name: string, version: string | undefined): WorkflowDefinition | undefined {
    return version === undefined ? this.#last.get(name) : this.#workflows.get(name)?.get(version);
  }

  /** The definition for a new instance: the given version, else the one registered last. Throws WORKFLOW_NOT_FOUND. */
  forStart(name: string, version: string | undefined): WorkflowDefinition {
    const found = this.ifStarted(name, version);
    if (found !== undefined) return found;
    const known = this.versions(name).map((definition) => definition.version);
    throw new WovyrError(`Workflow "${name}" has no version "${version}" here. Registered: ${known.join(", ")}.`, {
      code: "WORKFLOW_NOT_FOUND",
    });
  }

  /** The workflows whose new instances an event starts, with what each of them calls the event. */
  triggeredBy(event: string): readonly { readonly definition: WorkflowDefinition; readonly trigger: EventDef<unknown, never> }[] {
    return [...this.#last.values()].flatMap((definition) => {
      const trigger = definition.triggers?.find((candidate) => candidate.name === event);
      return trigger === undefined ? [] : [{ definition, trigger }];
    });
  }

  /** What the newest versions declare an event to be, as what they take or as what triggers them. */
  declared(event: string): ReadonlySet<EventDef<unknown, never>> {
    const all = [...this.#last.values()].flatMap(({ events = [], triggers = [] }) => [...events, ...triggers]);
    return new Set(all.filter((candidate) => candidate.name === event));
  }

  /** The declared definition of an event that a workflow takes. */
  event(workflow: string, version: string, event: string): EventDef<unknown, never> | undefined {
    return this.find(workflow, version)?.events?.find((candidate) => candidate.name === event);
  }
}
