// Names of databases that only this suite uses, so that it can clear them.

export const PREFIX = "conformance-";

/** A database made over REST for a case: `{uuid, name, ...}`. An older one of that name is deleted first. */
export async function freshDatabase(target, name) {
  await target.clear(PREFIX + name);
  return target.create(PREFIX + name);
}
