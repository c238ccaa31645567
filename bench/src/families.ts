/** All families of rows, in the order in which they are run. */
import type { Family } from "./family.ts";
import { memoryStoreFamily, pgliteFamily } from "./rows/embedded.ts";
import { failingFamily } from "./rows/failing.ts";
import { footprintFamily } from "./rows/footprint.ts";
import { herdFamily } from "./rows/herd.ts";
import { httpFamily } from "./rows/http.ts";
import { latencyFamily } from "./rows/latency.ts";
import { millionFamily } from "./rows/million.ts";
import { nodesFamily } from "./rows/nodes.ts";
import { overloadFamily } from "./rows/overload.ts";
import { replayFamily } from "./rows/replay.ts";
import { simulatedNodesFamily } from "./rows/simulated-nodes.ts";
import { suspendedFamily } from "./rows/suspended.ts";
import { takeoverFamily } from "./rows/takeover.ts";
import { testingKitFamily } from "./rows/testing-kit.ts";
import { fanOutFamily, oneStepFamily, sequentialFamily } from "./rows/throughput.ts";

export const families: readonly Family[] = [
  oneStepFamily,
  sequentialFamily,
  fanOutFamily,
  failingFamily,
  latencyFamily,
  httpFamily,
  nodesFamily,
  simulatedNodesFamily,
  takeoverFamily,
  replayFamily,
  footprintFamily,
  suspendedFamily,
  herdFamily,
  overloadFamily,
  millionFamily,
  pgliteFamily,
  memoryStoreFamily,
  testingKitFamily,
];
