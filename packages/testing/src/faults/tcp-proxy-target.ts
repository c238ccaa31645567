/**
 * Where a proxy leads: the address of a target, and URLs with the proxy's address in place of it.
 *
 * 1. Only the loopback interface is reached: tests disturb nobody else.
 */
import { WovyrError } from "@wovyr/sdk";

/** A URL whose scheme or port says where to connect, or the address itself. */
export type ProxyTarget = string | URL | { readonly host: string; readonly port: number };

export type Address = { readonly host: string; readonly port: number };

const defaultPorts: Readonly<Record<string, number>> = { "http:": 80, "https:": 443, "postgres:": 5432, "postgresql:": 5432 };

/** The address of a target; throws INVALID_OPTION when it is none, or not on the loopback interface. */
export function addressOf(target: ProxyTarget): Address {
  if (typeof target !== "string" && (typeof target !== "object" || target === null))
    refuse('tcpProxy() takes a URL such as "postgres://user@127.0.0.1:5432/database", or { host, port }');
  const { host, port } = typeof target === "string" || target instanceof URL ? addressOfUrl(parse(target)) : target;
  if (typeof host !== "string" || !isLoopback(host))
    refuse(
      `tcpProxy() leads to the loopback interface only (localhost, 127.0.0.1, ::1), not to ${host ? `"${host}"` : "a target without a host"}`,
    );
  if (!Number.isInteger(port) || port < 1 || port > 65_535) refuse(`tcpProxy() needs the port of its target, not ${port}`);
  return { host: host.replace(/^\[|\]$/g, ""), port };
}

/** The same URL with another port of 127.0.0.1. */
export function urlThrough(port: number, of: string | URL): string {
  const given = parse(of);
  const changed = new URL(given.href);
  changed.hostname = "127.0.0.1";
  changed.port = String(port);
  return typeof of === "string" && !of.endsWith("/") ? changed.href.replace(/\/$/, "") : changed.href;
}

function parse(url: string | URL): URL {
  try {
    return new URL(url);
  } catch {
    return refuse('tcpProxy() takes a URL such as "postgres://user@127.0.0.1:5432/database", or { host, port }');
  }
}

function addressOfUrl({ hostname, port, protocol }: URL): Address {
  return { host: hostname, port: Number(port || defaultPorts[protocol]) };
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host);
}

function refuse(message: string): never {
  throw new WovyrError(message, { code: "INVALID_OPTION" });
}
