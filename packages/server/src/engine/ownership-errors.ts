/** What a caller is told when the owner of a run is somewhere else, or nowhere. */
import { ApiError, WovyrError } from "@wovyr/sdk";
import type { ErrorCode } from "@wovyr/sdk/internal";

export const notOwner = (): ApiError =>
  new ApiError("This node does not own the run; ask again.", { code: "NOT_OWNER", retryAfter: 1_000 });

/** Asked again, it is the same: no node of this group ever owns it. */
export const ofOtherGroup = (what: string, group: string): ApiError =>
  new ApiError(`${what} is not of group "${group}", which this orchestrator is of: ask one of its own group.`, {
    code: "NOT_OWNER",
    status: 421,
    retryable: false,
  });

export const ownerUnreachable = (reason: string, cause?: unknown): ApiError =>
  new ApiError(`The node that owns the run cannot be asked: ${reason}. Ask again.`, {
    code: "OWNER_UNREACHABLE",
    retryAfter: 1_000,
    ...(cause !== undefined && { cause }),
  });

/** Why a node was not reached, as far as the error tells. */
export function reasonOf({ message, cause }: Error): string {
  return (cause instanceof Error && cause.message !== "" ? cause.message : message).replace(/\.$/, "");
}

/** Said to another node, which knows what it asks for. */
export const workflowElsewhere = (workflow: string, version: string | undefined): ApiError =>
  new ApiError(`Workflow "${workflow}"${version === undefined ? "" : ` version "${version}"`} is not registered on this node.`, {
    code: "WORKFLOW_ELSEWHERE",
    retryAfter: 1_000,
  });

/** Said of a node, and not of what was asked: another one may answer, or the same later. */
const ofNode: ReadonlySet<ErrorCode> = new Set([
  "NOT_OWNER",
  "OWNER_UNREACHABLE",
  "UNREACHABLE",
  "SHUTTING_DOWN",
  "WORKFLOW_ELSEWHERE",
  "CLUSTER_SECRET_REFUSED",
  "CLUSTER_MISCONFIGURED",
]);

export const isOfNode = (error: unknown): error is WovyrError => error instanceof WovyrError && ofNode.has(error.code);
/** Whether what was asked may have been done all the same. */
export const isUncertain = (error: unknown): boolean => error instanceof WovyrError && error.code === "UNREACHABLE";
