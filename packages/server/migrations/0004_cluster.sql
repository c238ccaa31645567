CREATE TABLE "wovyr"."nodes" (
	"group" text collate "C" NOT NULL,
	"node" text collate "C" NOT NULL,
	"url" text collate "C",
	"release" text collate "C" NOT NULL,
	"workflows" text collate "C" NOT NULL,
	"draining" boolean NOT NULL,
	"lease_until" timestamp with time zone NOT NULL,
	CONSTRAINT "nodes_pk" PRIMARY KEY("group","node")
);
--> statement-breakpoint
ALTER TABLE "wovyr"."shards" ADD COLUMN "needs" text collate "C";--> statement-breakpoint
ALTER TABLE "wovyr"."nodes" SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 100);
--> statement-breakpoint
-- A node says that it lives, gives up and takes shards, and hears who else does.
--
-- 1. Every owner of a shard is a row of nodes: who removes a node gives up its shards in the same transaction. So a node that was taken for dead finds, by
--    the same statement with which it comes back, that it owns nothing any more.
-- 2. It waits for nobody but another beat of the same node: what is locked by a flush, a step's transaction or another beat is left for the next one, and a
--    node of which a shard could not be given up yet stays until it could.
-- 3. Shards are locked in the order of their numbers, as flushes lock them.
--
-- Lists of texts are as in commit_1. A row of the answer is a node with the shards that it owns, or (no node) those that nobody owns.
CREATE FUNCTION "wovyr"."beat_1"(
  asked_group text, asked_shards integer, asked_node text, asked_url text, asked_release text, asked_workflows text, asked_draining boolean,
  lease double precision, dead text[], give integer[], give_epochs bigint[], give_needs text, take_free boolean, take integer[]
)
RETURNS TABLE (
  node text, url text, release text, workflows text, draining boolean, remaining double precision, shards text, epochs text, needs text
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
declare
  known integer;
  gone text[];
  locked integer[];
  needed text[] := string_to_array(give_needs, E'\x1f');
begin
  select g.shards into known from wovyr.groups g where g.name = asked_group;
  if not found then
    lock table wovyr.groups in share row exclusive mode;
    select g.shards into known from wovyr.groups g where g.name = asked_group;
    if not found then
      insert into wovyr.groups (name, first, shards)
      select asked_group, coalesce(max(g.first + g.shards), 0), asked_shards from wovyr.groups g;
      insert into wovyr.shards (id, "group", epoch)
      select g.first + slot, asked_group, 0 from wovyr.groups g, generate_series(0, asked_shards - 1) slot where g.name = asked_group;
      known := asked_shards;
    end if;
  end if;
  if known <> asked_shards then
    raise exception 'group "%" was created with % shards and cannot be opened with %', asked_group, known, asked_shards using errcode = 'WV001';
  end if;
  insert into wovyr.nodes as n ("group", node, url, release, workflows, draining, lease_until)
  values (asked_group, asked_node, asked_url, asked_release, asked_workflows, asked_draining, clock_timestamp() + lease * interval '1 millisecond')
  on conflict ("group", node) do update
    set url = excluded.url, release = excluded.release, workflows = excluded.workflows, draining = excluded.draining, lease_until = excluded.lease_until;
  select coalesce(array_agg(n.node), '{}') into gone from (
    select n.node from wovyr.nodes n
    where n."group" = asked_group and n.node <> asked_node and (n.lease_until <= clock_timestamp() or n.node = any (dead))
    order by n.node for update skip locked
  ) n;
  select coalesce(array_agg(s.id), '{}') into locked from (
    select s.id from wovyr.shards s
    where s."group" = asked_group
      and (s.owner = any (gone) or (s.owner = asked_node and s.id = any (give)) or (s.owner is null and (take_free or s.id = any (take))))
    order by s.id for no key update skip locked
  ) s;
  if cardinality(locked) > 0 then
    update wovyr.shards s
    set owner = null, needs = coalesce(nullif(needed[array_position(give, s.id)], ''), s.needs)
    where s.id = any (locked)
      and (s.owner = any (gone) or (s.owner = asked_node and s.epoch = give_epochs[array_position(give, s.id)]));
    update wovyr.shards s
    set owner = asked_node, epoch = s.epoch + 1
    where s.id = any (locked) and s.owner is null and (take_free or s.id = any (take));
  end if;
  if cardinality(gone) > 0 then
    delete from wovyr.nodes n
    where n."group" = asked_group and n.node = any (gone)
      and not exists (select from wovyr.shards s where s."group" = asked_group and s.owner = n.node);
  end if;
  return query
  select n.node, n.url, n.release, n.workflows, n.draining,
    greatest(0, extract(epoch from n.lease_until - clock_timestamp()) * 1000)::double precision, owned.ids, owned.epochs, owned.needs
  from (select n.* from wovyr.nodes n where n."group" = asked_group) n
  full join (
    select s.owner, array_agg(s.id order by s.id)::text as ids, array_agg(s.epoch order by s.id)::text as epochs,
      case when count(s.needs) > 0 then string_agg(coalesce(s.needs, ''), E'\x1f' order by s.id) end as needs
    from wovyr.shards s where s."group" = asked_group group by s.owner
  ) owned on owned.owner = n.node
  order by n.node;
end
$$;
--> statement-breakpoint
CREATE FUNCTION "wovyr"."leave_1"(asked_group text, asked_node text) RETURNS void LANGUAGE sql AS $$
  with node as (delete from wovyr.nodes n where n."group" = asked_group and n.node = asked_node),
  owned as (select s.id from wovyr.shards s where s."group" = asked_group and s.owner = asked_node order by s.id for no key update of s)
  update wovyr.shards s set owner = null from owned where s.id = owned.id
$$;
