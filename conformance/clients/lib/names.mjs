// Names of databases that only this suite uses, so that it can clear them.

export const PREFIX = "conformance-";

/** A new, empty database for a case: `{uuid, name, ...}`. An older one of that name is deleted first. */
export async function freshDatabase(target, name) {
  await target.remove(PREFIX + name);
  return target.create(PREFIX + name);
}
