/** `npm run check`: types, what is built, the linter and the places of the mutants, side by side; what each of them says comes in one piece. */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";

const root = join(import.meta.dirname, "..");

async function run(script: string): Promise<boolean> {
  const child = spawn("npm", ["run", script], { cwd: root, stdio: ["ignore", "pipe", "pipe"], shell: process.platform === "win32" });
  const ended = new Promise<boolean>((resolve) => child.once("close", (code) => resolve(code === 0)));
  const [out, err, passed] = await Promise.all([buffer(child.stdout), buffer(child.stderr), ended]);
  process.stdout.write(out);
  process.stderr.write(err);
  return passed;
}

const passed = await Promise.all(["typecheck", "build", "build:peers", "lint", "mutants:places"].map(run));
process.exitCode = passed.every(Boolean) ? 0 : 1;
