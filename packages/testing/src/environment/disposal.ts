/** What is said to those who use an environment that is gone, or that goes while they wait. */
import { WovyrError } from "@wovyr/sdk";

export const disposed = (): WovyrError =>
  new WovyrError("this environment has been disposed; did you forget an `await`?", { code: "SHUTTING_DOWN" });

export const disposedWhile = (what: string): WovyrError =>
  new WovyrError(`the environment was disposed while the test waited for ${what}; did you forget an \`await\`?`, { code: "SHUTTING_DOWN" });
