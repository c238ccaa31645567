/** Colours for a terminal; none where the output is no terminal or NO_COLOR is set, unless FORCE_COLOR asks for them. */
const { NO_COLOR, FORCE_COLOR } = process.env;
const isColoured = (NO_COLOR ?? "") === "" && ((FORCE_COLOR ?? "") !== "" || process.stdout.isTTY === true);

const paint = (code: number) => (text: string) => (isColoured ? `\u001b[${code}m${text}\u001b[0m` : text);

export const bold = paint(1);
export const dim = paint(2);
export const red = paint(31);
export const green = paint(32);
export const yellow = paint(33);
export const cyan = paint(36);
