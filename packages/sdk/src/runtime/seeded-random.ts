/** The generator behind `ctx.random()` and `ctx.uuid()`: sfc32, seeded with 128 bits from the start fact, so that a replay draws the same numbers. */
export class SeededRandom {
  #a: number;
  #b: number;
  #c: number;
  #counter: number;

  /** `seed` is 32 hexadecimal digits. */
  constructor(seed: string) {
    this.#a = Number.parseInt(seed.slice(0, 8), 16) | 0;
    this.#b = Number.parseInt(seed.slice(8, 16), 16) | 0;
    this.#c = Number.parseInt(seed.slice(16, 24), 16) | 0;
    this.#counter = Number.parseInt(seed.slice(24, 32), 16) | 0;
    for (let i = 0; i < 12; i++) this.#next();
  }

  /** A number in [0, 1) with 53 random bits. */
  fraction(): number {
    return ((this.#next() >>> 5) * 67108864 + (this.#next() >>> 6)) / 9007199254740992;
  }

  /** A UUID of version 4 (RFC 9562). */
  uuid(): string {
    const words = [this.#next(), this.#next(), this.#next(), this.#next()].map((word) => (word >>> 0).toString(16).padStart(8, "0"));
    const hex = words.join("");
    const variant = (8 + (Number.parseInt(hex.charAt(16), 16) & 3)).toString(16);
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20)}`;
  }

  #next(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = ((this.#c << 21) | (this.#c >>> 11)) + sum;
    return sum | 0;
  }
}
