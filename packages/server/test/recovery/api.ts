/** The HTTP API as a stranger sees it: a status, a body, headers. */
export type Answer = { readonly status: number; readonly headers: Headers; readonly body: Record<string, unknown> };

export async function call(url: string, method: "GET" | "POST", path: string, body?: object, key?: string): Promise<Answer> {
  const response = await fetch(`${url}${path}`, {
    method,
    headers: {
      ...(body !== undefined && { "content-type": "application/json" }),
      ...(key !== undefined && { "idempotency-key": key }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  return { status: response.status, headers: response.headers, body: (await response.json()) as Record<string, unknown> };
}

/** The status of /health/ready; 0 when nobody answers. */
export async function readiness(url: string): Promise<number> {
  try {
    const response = await fetch(`${url}/health/ready`);
    await response.text();
    return response.status;
  } catch {
    return 0;
  }
}
