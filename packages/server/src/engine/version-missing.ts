/** Why a run whose code is not registered here answers nothing. */
import { ApiError } from "@wovyr/sdk";

export const versionMissing = ({ workflow, version }: { readonly workflow: string; readonly version: string }): ApiError =>
  new ApiError(
    `Version "${version}" of workflow "${workflow}" is not registered here: the run waits, and answers nothing until an orchestrator with that version is started.`,
    { code: "VERSION_NOT_REGISTERED" },
  );
