import { WovyrError } from "./errors.ts";

/** A history whose facts cannot follow one another: a bug of the engine, or a history that was edited. */
export class InvalidTransition extends WovyrError {
  constructor(what: string, from: string, to: string) {
    super(`${what} cannot go from ${from} to ${to}`, { code: "INTERNAL" });
  }
}
