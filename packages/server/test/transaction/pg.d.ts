/** The little of `pg` that the tests use; it comes without types. */
declare module "pg" {
  export type Result = { readonly rows: readonly Record<string, unknown>[] };
  export class Client {
    constructor(options: { readonly connectionString: string });
    connect(): Promise<void>;
    query(text: string, values?: readonly unknown[]): Promise<Result>;
    end(): Promise<void>;
    on(event: "error", listener: (error: Error) => void): this;
  }
  const pg: { readonly Client: typeof Client };
  export default pg;
}
