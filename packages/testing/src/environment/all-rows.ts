/** As many rows as any store can be asked for: databases count them in 32 bits. */
export const allRows = 2 ** 31 - 1;
