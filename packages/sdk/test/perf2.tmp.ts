import { encodePayload, decodePayload } from "../src/model/payload.ts";
const rows = Array.from({ length: 1000 }, (_, i) => ({ id: `row-${i}`, at: new Date(i), amount: 5n, tags: ["a", "b"] }));
for (let r = 0; r < 3; r++) { let best = 1e9; for (let i = 0; i < 30; i++) { const t = performance.now(); encodePayload(rows); best = Math.min(best, performance.now() - t); } console.log("encode 1000 rich rows ms", best.toFixed(2)); }
const t1 = encodePayload(rows); let best = 1e9; for (let i = 0; i < 30; i++) { const t = performance.now(); decodePayload(t1); best = Math.min(best, performance.now() - t); } console.log("decode", best.toFixed(2), t1.length);
const fail = (v: unknown, n: string) => { const t = performance.now(); try { encodePayload(v); } catch {} console.log(n, (performance.now() - t).toFixed(0), "ms"); };
let bomb: unknown = ["lol"]; for (let level = 0; level < 40; level++) bomb = [bomb, bomb];
fail(bomb, "bomb"); fail([bomb, 1n], "rich bomb"); fail(Object.assign([], { length: 4e9 }), "length");
const text = "x".repeat(1_000_000);
for (const [n, part] of Object.entries({ text, key: { [text]: 1 }, bytes: new Uint8Array(1_000_000), error: new Error(text) })) fail(Array.from({ length: 2_000_000 }, () => part), n);
