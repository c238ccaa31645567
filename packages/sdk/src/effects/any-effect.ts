import type { ActivityEffect } from "./activity.ts";
import type { EventEffect } from "./await-event.ts";
import type { ChildEffect } from "./child.ts";
import type { CombinatorEffect } from "./combinator.ts";
import type { CompensateNowEffect } from "./compensate-now.ts";
import type { ConditionEffect } from "./condition.ts";
import type { ContinueAsNewEffect } from "./continue-as-new.ts";
import type { MapEffect } from "./map.ts";
import type { PatchedEffect } from "./patched.ts";
import type { SagaEffect } from "./saga.ts";
import type { SelectEffect } from "./select.ts";
import type { ShieldEffect } from "./shield.ts";
import type { SideEffect } from "./side-effect.ts";
import type { SleepEffect } from "./sleep.ts";
import type { SpawnEffect } from "./spawn.ts";
import type { CancelTaskEffect, Task } from "./task.ts";
import type { TimeoutEffect } from "./timeout.ts";

/** Every effect there is: the runtime switches over `kind`. */
export type AnyEffect =
  | ActivityEffect<unknown>
  | SleepEffect
  | EventEffect<unknown>
  | ChildEffect<unknown>
  | CombinatorEffect<unknown>
  | SelectEffect<unknown>
  | MapEffect<unknown>
  | TimeoutEffect<unknown>
  | ShieldEffect<unknown>
  | SagaEffect<unknown>
  | CompensateNowEffect
  | ConditionEffect
  | ContinueAsNewEffect
  | PatchedEffect
  | SpawnEffect<unknown>
  | SideEffect<unknown>
  | Task<unknown>
  | CancelTaskEffect;
