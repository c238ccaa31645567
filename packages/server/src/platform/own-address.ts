/** At which URL others reach a server of this process that listens on a host and a port. */
import { networkInterfaces } from "node:os";

const everywhere: ReadonlySet<string> = new Set(["0.0.0.0", "::", ""]);

export function ownAddress(host: string, port: number): string {
  const name = everywhere.has(host) ? firstAddress() : host;
  return `http://${name.includes(":") ? `[${name}]` : name}:${port}`;
}

/** Whether a host, as an URL writes it, is an address of this machine. */
export function isOwnAddress(host: string): boolean {
  const wanted = host.replace(/^\[(.*)\]$/, "$1");
  return Object.values(networkInterfaces()).some((addresses) => (addresses ?? []).some(({ address }) => address === wanted));
}

/** Of this machine's addresses the first that other machines reach, IPv4 before IPv6. */
function firstAddress(): string {
  const outside = Object.values(networkInterfaces()).flatMap((addresses) => (addresses ?? []).filter(({ internal }) => !internal));
  const found = outside.find(({ family }) => family === "IPv4") ?? outside.find(({ scopeid }) => scopeid === 0);
  return found?.address ?? "127.0.0.1";
}
