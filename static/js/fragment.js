/* A GET for a fragment, with what our server wants to know of it. */
export async function fragment(address, more = {}) {
  const response = await fetch(address, { headers: { "HX-Request": "true", ...more }, credentials: "same-origin" });
  if (!response.ok) throw new Error(`${address}: ${response.status}`);
  return response.status === 204 ? "" : response.text();
}
