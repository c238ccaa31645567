/** One HTTP request and its whole answer. */

export type HttpRequest = {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  readonly signal: AbortSignal;
};

export type HttpAnswer = { readonly status: number; readonly header: (name: string) => string | null; readonly text: string };

export type SendRequest = (request: HttpRequest) => Promise<HttpAnswer>;

/** Through a `fetch`, the global one or the caller's own. */
export function overFetch(fetch: typeof globalThis.fetch): SendRequest {
  return async ({ url, body, ...init }) => {
    const response = await fetch(url, { ...init, ...(body !== undefined && { body }) });
    return { status: response.status, header: (name) => response.headers.get(name), text: await response.text() };
  };
}
