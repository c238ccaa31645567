/** Wovyr through HTTP: the SDK's client here, the orchestrator in a process of its own. Defaults throughout. */
import { type ChildProcess, fork } from "node:child_process";
import { createClient } from "@wovyr/sdk/client";
import type { Engine, EngineOptions } from "../engine.ts";
import { engineOver } from "./wovyr-workflows.ts";

const server = new URL("./wovyr-http-server.js", import.meta.url);

export async function start({ database }: EngineOptions): Promise<Engine> {
  const child = fork(server, [database], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const client = createClient({ url: await addressOf(child) });
  return {
    ...engineOver(client),
    startLong: () => Promise.reject(new Error("recovery has nothing to do with HTTP: it is measured in process")),
    async close() {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.disconnect();
      await ended;
    },
  };
}

function addressOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    child.once("message", (message) => resolve(String(message)));
    child.once("exit", () => reject(new Error("the orchestrator's process ended before it listened")));
  });
}
