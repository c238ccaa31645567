/** Checks for the formats of JSON Schema that TypeBox leaves to be registered. */
import { FormatRegistry } from "@sinclair/typebox";

const date = /^(\d{4})-(\d\d)-(\d\d)$/;
const time = /^(?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;
const email = /^[^\s@]{1,64}@[^\s@.]+(?:\.[^\s@.]+)+$/;
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const ipv4 = /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$/;
const ipv6 = /^[0-9A-Fa-f:.]{2,45}$/;
const scheme = /^[A-Za-z][A-Za-z\d+.-]*:\S+$/;
const longestEmail = 320;

function isDate(text: string): boolean {
  const match = date.exec(text);
  if (match === null) return false;
  const [year, month, day] = match.slice(1).map(Number) as [number, number, number];
  const made = new Date(0);
  made.setUTCFullYear(year, month - 1, day);
  return made.getUTCMonth() === month - 1 && made.getUTCDate() === day;
}

const checks: Readonly<Record<string, (text: string) => boolean>> = {
  date: isDate,
  time: (text) => time.test(text),
  "date-time": (text) => isDate(text.slice(0, 10)) && /^[Tt ]/.test(text.slice(10)) && time.test(text.slice(11)),
  email: (text) => text.length <= longestEmail && email.test(text),
  uuid: (text) => uuid.test(text),
  uri: (text) => scheme.test(text) && URL.canParse(text),
  ipv4: (text) => ipv4.test(text),
  ipv6: (text) => ipv6.test(text) && URL.canParse(`http://[${text}]`),
};

let isRegistered = false;

/** Registers the checks, once, where nobody has registered others. */
export function registerFormats(): void {
  if (isRegistered) return;
  isRegistered = true;
  for (const [format, check] of Object.entries(checks)) if (!FormatRegistry.Has(format)) FormatRegistry.Set(format, check);
}
