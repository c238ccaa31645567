/** What something comes to, and what can be done to it until then. */

/** What was thrown: errors are known by name and message. */
export class Fault {
  readonly name: string;
  readonly message: string;
  constructor(name: string, message: string) {
    this.name = name;
    this.message = message;
  }
}

export type Outcome = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly fault: Fault };
export type Done = (outcome: Outcome) => void;
export type Operation = { readonly cancel: (reason: Fault) => void; readonly abandon: () => void; readonly undoing?: () => boolean };

export const ok = (value: unknown): Outcome => ({ ok: true, value });
export const failed = (fault: Fault): Outcome => ({ ok: false, fault });
export const cancelled = (why: string) => new Fault("CancelledError", why);
export const closing = cancelled("no longer needed: what it belonged to has ended");
export const nothing: Operation = { cancel() {}, abandon() {} };
