/**
 * The id of a dead letter: opaque to callers, a name as any other id, and another one when the same work is given up once more.
 *
 * 1. It says which work of which run it is, and how often that had been tried.
 * 2. Effect ids have characters that no name has: those are escaped. One that is too long is named by its digest, and found in history.
 */
import { checkName, type DeadLetterKind, digest, type EffectId } from "@wovyr/sdk/internal";

/** What an id says. */
export type DeadLetterPlace = {
  readonly kind: DeadLetterKind;
  readonly run: string;
  readonly attempts: number;
  /** Undefined where only the digest is known. */
  readonly effect: EffectId | undefined;
  readonly isEffect: (effect: EffectId) => boolean;
};

const letters: Readonly<Record<DeadLetterKind, string>> = { activity: "a", compensation: "c", workflow: "w", event: "e" };
const kinds = new Map(Object.entries(letters).map(([kind, letter]) => [letter, kind as DeadLetterKind]));
const escapes: Readonly<Record<string, string>> = { "~": "t", "/": "s", "#": "h", "!": "b", "-": "-" };
const escaped = new Map(Object.entries(escapes).map(([character, letter]) => [letter, character]));
const shape = /^([acwe])(\d{1,15})\.([A-Za-z0-9_.:@-]+)~(.+)$/;
const digested = /^-d([0-9a-z]+)$/;
const longest = 255;

type Work = { readonly kind: DeadLetterKind; readonly run: string; readonly effect: EffectId; readonly attempts: number };

export function deadLetterId({ kind, run, effect, attempts }: Work): string {
  const begin = `${letters[kind]}${attempts}.`;
  const text = effect.replaceAll(/[~/#!-]/g, (character) => `-${escapes[character]}`);
  const id = `${begin}${text}~${run}`;
  return id.length <= longest ? id : `${begin}-d${digest(effect)}~${run}`;
}

/** Undefined for what is no id of a dead letter. Throws INVALID_NAME. */
export function placeOfDeadLetter(id: string): DeadLetterPlace | undefined {
  const [, letter = "", attempts, text = "", run = ""] = shape.exec(checkName(id, "the id of a dead letter")) ?? [];
  const kind = kinds.get(letter);
  if (kind === undefined) return undefined;
  const short = digested.exec(text)?.[1];
  const effect = short === undefined ? text.replaceAll(/-(.)/g, (_, character: string) => escaped.get(character) ?? "") : undefined;
  const isEffect = (other: EffectId) => (effect === undefined ? digest(other) === short : other === effect);
  return { kind, run, attempts: Number(attempts), effect, isEffect };
}
