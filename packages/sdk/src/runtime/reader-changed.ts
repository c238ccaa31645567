/** What only reads changed the run: nothing of its execution may be used any more, and whoever asked for it is refused. The run itself is not at fault. */
import { ApiError } from "../model/errors.ts";

export class ReaderChanged extends Error {
  /** The message that is to be refused. */
  readonly asked: string;
  readonly refusal: ApiError;

  constructor(asked: string, refusal: ApiError) {
    super(refusal.message);
    this.asked = asked;
    this.refusal = refusal;
  }
}

const changed = "changed ctx.variables or ctx.attributes";

export const queryChanged = (name: string): ApiError =>
  new ApiError(`Query "${name}" ${changed}. A query only reads; make the change in an update or in the workflow itself.`, {
    code: "QUERY_FAILED",
  });

export const validatorChanged = (name: string): ApiError =>
  new ApiError(`Update "${name}" was refused: its validator ${changed}. A validator only reads; let the handler make the change.`, {
    code: "UPDATE_REJECTED",
  });
