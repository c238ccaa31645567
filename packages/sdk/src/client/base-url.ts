import { WovyrError } from "../model/errors.ts";

/** The URL that an API is under, without a slash at its end. Throws INVALID_OPTION, which names the option by `what`. */
export function baseUrl(url: string | URL, what: string): string {
  let base: URL;
  try {
    base = new URL(url);
  } catch (cause) {
    throw new WovyrError(`${what} must be an absolute URL such as "http://127.0.0.1:7420", not ${JSON.stringify(String(url))}`, {
      code: "INVALID_OPTION",
      cause,
    });
  }
  if (base.protocol !== "http:" && base.protocol !== "https:")
    throw new WovyrError(`${what} must begin with http or https, not ${base.protocol}`, { code: "INVALID_OPTION" });
  const extra = [
    (base.username !== "" || base.password !== "") && "a user or a password",
    base.search !== "" && "a query",
    base.hash !== "" && "a fragment",
  ].filter((part) => part !== false);
  if (extra.length > 0)
    throw new WovyrError(`${what} must be origin and path alone, such as "https://host:7420/wovyr", without ${extra.join(" and ")}`, {
      code: "INVALID_OPTION",
    });
  return `${base.origin}${base.pathname.replace(/\/+$/, "")}`;
}
