import wovyr, { configs } from "@wovyr/sdk/eslint";
import type { ESLint, Linter } from "eslint";
import { defineConfig } from "eslint/config";
export const a: Linter.Config = configs.recommended;
export const b: ESLint.Plugin = wovyr;
export default defineConfig([wovyr.configs.recommended]);
