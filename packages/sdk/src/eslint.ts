/** Rules for ESLint's flat config: `import wovyr from "@wovyr/sdk/eslint"; export default [wovyr.configs.recommended]`. */

import { noForeignAwait } from "./eslint/no-foreign-await.ts";
import { noNondeterminism } from "./eslint/no-nondeterminism.ts";
import type { Rule } from "./eslint/rule.ts";
import { yieldEffects } from "./eslint/yield-effects.ts";

export const rules = {
  "yield-effects": yieldEffects,
  "no-foreign-await": noForeignAwait,
  "no-nondeterminism": noNondeterminism,
} as const satisfies Record<string, Rule>;

const plugin = { meta: { name: "@wovyr/sdk", version: "0.1.0" }, rules };

const recommended = {
  name: "wovyr/recommended",
  plugins: { wovyr: plugin },
  rules: {
    "wovyr/yield-effects": "error",
    "wovyr/no-foreign-await": "error",
    "wovyr/no-nondeterminism": "error",
  },
} as const;

export const configs = { recommended };

export default { ...plugin, configs };
