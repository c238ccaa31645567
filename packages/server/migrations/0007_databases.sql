CREATE TABLE "wovyr"."database_sets" (
	"id" text collate "C" PRIMARY KEY NOT NULL,
	"place" integer NOT NULL,
	"size" integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE "wovyr"."outbox" (
	"position" bigserial NOT NULL,
	"shard" integer NOT NULL,
	"target" integer NOT NULL,
	"tenant" text collate "C" NOT NULL,
	"run" text collate "C" NOT NULL,
	"name" text collate "C" NOT NULL,
	"parcel" text collate "C" NOT NULL,
	CONSTRAINT "outbox_pk" PRIMARY KEY("tenant","run","name","target")
);
--> statement-breakpoint
CREATE INDEX "outbox_order" ON "wovyr"."outbox" USING btree ("target","shard","position");
--> statement-breakpoint
ALTER TABLE "wovyr"."outbox" SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.5);
--> statement-breakpoint
-- What a database does as one of several; `engine/ports/databases.ts` says what each function promises. Lists of texts are as in commit_1.
--
-- Makes the database one of a set unless it is one, and says which it is of; nothing when it is in use by itself.
CREATE FUNCTION "wovyr"."join_set_1"(asked_id text, asked_place integer, asked_size integer)
RETURNS TABLE (id text, place integer, size integer) LANGUAGE plpgsql AS $$
#variable_conflict use_column
begin
  lock table wovyr.database_sets in share row exclusive mode;
  if not exists (select from wovyr.database_sets) and not exists (select from wovyr.groups) then
    insert into wovyr.database_sets (id, place, size) values (asked_id, asked_place, asked_size);
  end if;
  return query select s.id, s.place, s.size from wovyr.database_sets s;
end
$$;
--> statement-breakpoint
-- Where a group's shards begin, and how many it has. One that is unknown is made where `asked_first` says, or (-1) after all others; null makes none.
CREATE FUNCTION "wovyr"."group_1"(asked_group text, asked_shards integer, asked_first integer) RETURNS TABLE (first integer, shards integer) LANGUAGE plpgsql AS $$
#variable_conflict use_column
begin
  if asked_first is not null and not exists (select from wovyr.groups g where g.name = asked_group) then
    lock table wovyr.groups in share row exclusive mode;
    if not exists (select from wovyr.groups g where g.name = asked_group) then
      insert into wovyr.groups (name, first, shards)
      select asked_group, case when asked_first >= 0 then asked_first else coalesce(max(g.first + g.shards), 0) end, asked_shards from wovyr.groups g;
      insert into wovyr.shards (id, "group", epoch)
      select g.first + slot, asked_group, 0 from wovyr.groups g, generate_series(0, asked_shards - 1) slot where g.name = asked_group;
    end if;
  end if;
  return query select g.first, g.shards from wovyr.groups g where g.name = asked_group;
end
$$;
--> statement-breakpoint
-- The part of a flush that is for other databases: called in the statement that commits it, with what `commit_1` said (`done` null: all turns), and only for
-- flushes that have such a part. `items` are in the order of their writing: {turn, tenant, run, shard, name, target, parcel}.
CREATE FUNCTION "wovyr"."commit_outbox_1"(done text, items text) RETURNS void LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
declare
  accepted bigint[] := done::bigint[];
begin
  insert into wovyr.outbox (shard, target, tenant, run, name, parcel)
  select i.shard, i.target, i.tenant, i.run, i.name, i.parcel
  from json_to_recordset(items::json) i(turn bigint, tenant text, run text, shard integer, name text, target integer, parcel text)
  where accepted is null or i.turn = any (accepted)
  on conflict do nothing;
end
$$;
--> statement-breakpoint
-- What is for a database, of senders of some shards. Mostly there is none.
CREATE FUNCTION "wovyr"."outbox_1"(asked_target integer, asked_shards integer[], after_position bigint, most integer)
RETURNS TABLE ("position" double precision, shard integer, tenant text, run text, name text, parcel text) LANGUAGE plpgsql STABLE
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET plan_cache_mode = force_generic_plan AS $$
begin
  perform from wovyr.outbox limit 1;
  if not found then
    return;
  end if;
  return query
  select o.position::double precision, o.shard, o.tenant, o.run, o.name, o.parcel
  from (
    select m.tid from unnest(asked_shards) s(id) cross join lateral (
      select q.ctid as tid, q.position from wovyr.outbox q
      where q.target = asked_target and q.shard = s.id and q.position > after_position order by q.position limit most
    ) m
    order by m.position limit most
  ) first
  cross join lateral (select q.* from wovyr.outbox q where q.ctid = first.tid offset 0) o
  order by o.position;
end
$$;
--> statement-breakpoint
-- Removes what was brought to a database.
CREATE FUNCTION "wovyr"."drop_outbox_1"(tenants text, runs text, names text, targets integer[]) RETURNS void LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
begin
  delete from wovyr.outbox w using (
    select found.tid
    from unnest(string_to_array(tenants, E'\x1f'), string_to_array(runs, E'\x1f'), string_to_array(names, E'\x1f'), targets) m(tenant, run, name, target)
    cross join lateral (
      select r.ctid as tid from wovyr.outbox r where r.tenant = m.tenant and r.run = m.run and r.name = m.name and r.target = m.target offset 0
    ) found
    offset 0
  ) t where w.ctid = t.tid;
end
$$;
--> statement-breakpoint
-- Takes in what comes from another database, in order, and says of each whether it is done, or its id is taken. `items`: {child, tenant, run, shard, message,
-- fact}, and of a child, whose start the message is, what its row holds.
CREATE FUNCTION "wovyr"."receive_1"(items text) RETURNS text LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
declare
  item record;
  answers boolean[] := '{}';
  made boolean;
begin
  for item in
    select * from json_to_recordset(items::json) i(child boolean, tenant text, run text, shard integer, message text, fact text, at bigint, id text,
      workflow text, version text, parent text, correlation text, slot text, digest text)
  loop
    if not item.child then
      insert into wovyr.inbox (shard, tenant, run, message, fact)
      select item.shard, item.tenant, item.run, item.message, item.fact
      where exists (select from wovyr.instances i where i.tenant = item.tenant and i.run = item.run and coalesce(i.closed_at, -1) = -1)
      on conflict do nothing;
      answers := answers || true;
      continue;
    end if;
    made := not exists (select from wovyr.instances i where i.tenant = item.tenant and i.run = item.run);
    if not made then
      answers := answers || true;
      continue;
    end if;
    if item.slot is not null then
      insert into wovyr.start_keys (at, tenant, slot, run, digest) values (item.at, item.tenant, item.slot, item.run, item.digest) on conflict do nothing;
      made := found;
    end if;
    if made then
      insert into wovyr.instances
        (created_at, closed_at, shard, tail, busy, tenant, run, id, workflow, version, status, nonce, parent, correlation_id)
      values (item.at, null, item.shard, 0, false, item.tenant, item.run, item.id, item.workflow, item.version, 'open', '', item.parent, item.correlation)
      on conflict do nothing;
      made := found;
      if made then
        insert into wovyr.inbox (shard, tenant, run, message, fact)
        values (item.shard, item.tenant, item.run, item.message, item.fact) on conflict do nothing;
      else
        if item.slot is not null then
          delete from wovyr.start_keys k where k.tenant = item.tenant and k.slot = item.slot and k.run = item.run;
        end if;
        -- Whoever else brings it may have made it just now.
        made := exists (select from wovyr.instances i where i.tenant = item.tenant and i.run = item.run);
      end if;
    end if;
    answers := answers || made;
  end loop;
  return answers::text;
end
$$;
