import type { Operations } from "@wovyr/sdk/internal";

/** Operations that do what a test says, for what the real engine does not do on demand (fail, hang, be slow); the rest is refused. */
export function scripted(script: Partial<Operations>): Operations {
  const refuse = (name: string) => () => Promise.reject(new Error(`no script for ${name}`));
  return new Proxy(script as Operations, {
    get: (target, name) => Reflect.get(target, name) ?? refuse(String(name)),
  });
}
