/** Starts an orchestrator again whenever it ends, as a service manager does. */
import type { Ground } from "./ground.ts";
import type { Ending, Host, HostOptions } from "./host.ts";

export type Supervisor = {
  /** How each process ended so far. */
  readonly endings: readonly Ending[];
  readonly host: Host;
  log(): string;
  /** Starts no further one; ends the present one gracefully. */
  stop(): Promise<Ending>;
};

export function supervise(place: Ground, options: Partial<HostOptions> & { readonly port: number }): Supervisor {
  const endings: Ending[] = [];
  const hosts: Host[] = [];
  let stopping = false;
  const begin = (host: Host) => {
    hosts.push(host);
    const spare = place.host({ ...options, prepared: true });
    void host.ended.then((ending) => {
      if (stopping) return spare.destroy();
      endings.push(ending);
      spare.go();
      begin(spare);
    });
  };
  begin(place.host(options));
  const present = () => hosts[hosts.length - 1] as Host;
  return {
    endings,
    get host() {
      return present();
    },
    log: () => hosts.map((host) => host.log()).join(""),
    async stop() {
      stopping = true;
      present().kill("SIGTERM");
      return present().ended;
    },
  };
}
