import { CancelledError } from "../model/errors.ts";

/** The reason that is given to whatever is closed because its surroundings ended. */
export const closing = new CancelledError("no longer needed: what it belonged to has ended");
