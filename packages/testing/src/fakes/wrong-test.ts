/** What an attempt fails with when the test is wrong: an activity that has no fake, a list of answers that is used up. It fails the test even where the workflow catches it. */
import { NonRetryableError } from "@wovyr/sdk";

export class WrongTestError extends NonRetryableError {}
