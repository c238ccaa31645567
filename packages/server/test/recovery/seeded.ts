/** Random numbers from a seed: of WOVYR_TEST_SEED, or a new one, which is printed. */
export function seeded(title: string): { readonly seed: number; fraction(): number; whole(below: number): number } {
  const seed = Number(process.env.WOVYR_TEST_SEED ?? Math.floor(Math.random() * 2 ** 31));
  console.log(`${title}: WOVYR_TEST_SEED=${seed}`);
  let state = seed >>> 0;
  const fraction = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return { seed, fraction, whole: (below) => Math.floor(fraction() * below) };
}
