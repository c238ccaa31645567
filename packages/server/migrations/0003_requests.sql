CREATE TABLE "wovyr"."requests" (
	"position" bigserial NOT NULL,
	"shard" integer NOT NULL,
	"tenant" text collate "C" NOT NULL,
	"run" text collate "C" NOT NULL,
	"message" text collate "C" NOT NULL,
	"kind" text collate "C" NOT NULL,
	"digest" text collate "C" NOT NULL,
	"fact" text collate "C" NOT NULL,
	CONSTRAINT "requests_pk" PRIMARY KEY("tenant","run","message")
);
--> statement-breakpoint
CREATE INDEX "requests_asked" ON "wovyr"."requests" USING btree ("shard","position");
--> statement-breakpoint
ALTER TABLE "wovyr"."requests" SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.5);
--> statement-breakpoint
-- What applications call in transactions of their own.
--
-- 1. Parameters and answers are texts, whatever the driver makes of other types; numbers are written in decimal digits, and an answer is a JSON object
--    whose `outcome` tells what became of it.
-- 2. What is refused is answered, and never raised: the transaction goes on, and holds nothing of it. Only what the isolation of the transaction does not
--    let through is raised (40001), as with any other statement of it.
-- 3. They take no lock but that of the names they write, and wait for nobody but who writes the same name in a transaction that is open.
-- 4. They run with the rights of who made the tables: whoever may use the schema may call them.
--
-- The shard of an instance in its group: `shardHash` in shard-of.ts, and the number of shards.
CREATE FUNCTION "wovyr"."shard_in_1"(asked_group text, hash text) RETURNS integer LANGUAGE sql STABLE AS $$
  select g.first + (hash::bigint % g.shards)::integer from wovyr.groups g where g.name = asked_group
$$;
--> statement-breakpoint
-- Whether a shard is another database's, of several.
CREATE FUNCTION "wovyr"."is_elsewhere_1"(asked_shard integer) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
begin
  return coalesce((select asked_shard % d.size <> d.place from wovyr.database_sets d), false);
end
$$;
--> statement-breakpoint
-- Creates a run with tail 0, its start (and the event that comes with it) in its inbox. Outcomes: 'started'; 'no-group'; 'elsewhere', with what tells which ids are
-- this database's, when the id is another's; 'key-taken' with the `run` and
-- `digest` that have the key, and its `id`; 'id-taken' with the `run` and `workflow` that have the id.
CREATE FUNCTION "wovyr"."start_in_1"(
  asked_group text, hash text, asked_tenant text, asked_run text, asked_id text, asked_workflow text, asked_version text, asked_correlation text,
  asked_slot text, asked_digest text, asked_at text, start_message text, start_fact text, event_message text, event_fact text
) RETURNS text LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
declare
  place integer := wovyr.shard_in_1(asked_group, hash);
  taken record;
  written boolean := false;
begin
  if place is null then
    return json_build_object('outcome', 'no-group')::text;
  end if;
  if wovyr.is_elsewhere_1(place) then
    return (
      select json_build_object('outcome', 'elsewhere', 'first', g.first, 'shards', g.shards, 'place', d.place, 'size', d.size)::text
      from wovyr.groups g cross join wovyr.database_sets d where g.name = asked_group
    );
  end if;
  if asked_slot is not null then
    for tries in 1..10 loop
      insert into wovyr.start_keys (at, tenant, slot, run, digest) values (asked_at::bigint, asked_tenant, asked_slot, asked_run, asked_digest)
      on conflict do nothing;
      written := found;
      exit when written;
      select k.run, k.digest into taken from wovyr.start_keys k where k.tenant = asked_tenant and k.slot = asked_slot;
      if found then
        return json_build_object('outcome', 'key-taken', 'run', taken.run, 'digest', taken.digest, 'id', (
          select i.id from wovyr.instances i where i.tenant = asked_tenant and i.run >= taken.run and i.run <= taken.run order by i.run limit 1
        ))::text;
      end if;
    end loop;
    if not written then
      raise exception 'an idempotency key comes and goes' using errcode = '40001';
    end if;
  end if;
  for tries in 1..10 loop
    insert into wovyr.instances
      (created_at, closed_at, shard, tail, busy, tenant, run, id, workflow, version, status, nonce, parent, correlation_id)
    values (asked_at::bigint, null, place, 0, false, asked_tenant, asked_run, asked_id, asked_workflow, asked_version, 'open', '', null, asked_correlation)
    on conflict do nothing;
    written := found;
    exit when written;
    -- The order keeps it to the index of open ids: while the table is small, any index of the tenant costs the same.
    select i.run, i.workflow into taken from wovyr.instances i
    where i.tenant = asked_tenant and i.id >= asked_id and i.id <= asked_id and i.closed_at is null order by i.id limit 1;
    if found then
      if asked_slot is not null then
        delete from wovyr.start_keys k where k.tenant = asked_tenant and k.slot = asked_slot and k.run = asked_run;
      end if;
      return json_build_object('outcome', 'id-taken', 'run', taken.run, 'workflow', taken.workflow)::text;
    end if;
    -- Whoever was in the way has closed just now.
  end loop;
  if not written then
    raise exception 'an id comes and goes' using errcode = '40001';
  end if;
  insert into wovyr.inbox (shard, tenant, run, message, fact) values (place, asked_tenant, asked_run, start_message, start_fact);
  if event_message is not null then
    insert into wovyr.inbox (shard, tenant, run, message, fact) values (place, asked_tenant, asked_run, event_message, event_fact);
  end if;
  insert into wovyr.requests (shard, tenant, run, message, kind, digest, fact) values (place, asked_tenant, asked_run, start_message, 'start', '', '');
  return json_build_object('outcome', 'started')::text;
end
$$;
--> statement-breakpoint
-- Keeps a request under its name: 'asked'; 'known' when it was asked for already; 'conflict' when another one has its name.
CREATE FUNCTION "wovyr"."ask_1"(
  place integer, asked_tenant text, asked_run text, asked_message text, asked_kind text, asked_digest text, asked_fact text
) RETURNS text LANGUAGE plpgsql SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
declare
  first_digest text;
begin
  for tries in 1..10 loop
    insert into wovyr.requests (shard, tenant, run, message, kind, digest, fact)
    values (place, asked_tenant, asked_run, asked_message, asked_kind, asked_digest, asked_fact) on conflict do nothing;
    if found then
      return 'asked';
    end if;
    select r.digest into first_digest from wovyr.requests r where r.tenant = asked_tenant and r.run = asked_run and r.message = asked_message;
    if found then
      return case when first_digest = asked_digest then 'known' else 'conflict' end;
    end if;
    -- It was done just now.
  end loop;
  raise exception 'a request comes and goes' using errcode = '40001';
end
$$;
--> statement-breakpoint
-- Outcomes: those of ask_1, and 'closed' or 'unknown' when no run of the id is open. What is for an instance of another database is asked for by its id.
CREATE FUNCTION "wovyr"."send_in_1"(asked_group text, hash text, asked_tenant text, asked_id text, asked_message text, asked_digest text, asked_fact text)
RETURNS text LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
declare
  receiver record;
  place integer := wovyr.shard_in_1(asked_group, hash);
begin
  if place is not null and wovyr.is_elsewhere_1(place) then
    return json_build_object('outcome', wovyr.ask_1(place, asked_tenant, asked_id, asked_message, 'sendTo', asked_digest, asked_fact))::text;
  end if;
  select i.run, i.shard into receiver from wovyr.instances i
  where i.tenant = asked_tenant and i.id >= asked_id and i.id <= asked_id and i.closed_at is null order by i.id limit 1;
  if not found then
    perform from wovyr.instances i
    where i.tenant = asked_tenant and i.id >= asked_id and i.id <= asked_id and i.closed_at is not null order by i.id, i.run limit 1;
    return json_build_object('outcome', case when found then 'closed' else 'unknown' end)::text;
  end if;
  return json_build_object('outcome',
    wovyr.ask_1(receiver.shard, asked_tenant, receiver.run, asked_message, 'send', asked_digest, asked_fact), 'run', receiver.run)::text;
end
$$;
--> statement-breakpoint
-- Outcomes: those of ask_1, and 'no-group'. What was published already is asked for again: it is known when it is done.
CREATE FUNCTION "wovyr"."publish_in_1"(
  asked_group text, hash text, asked_tenant text, asked_id text, asked_message text, asked_digest text, asked_fact text
) RETURNS text LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
declare
  place integer := wovyr.shard_in_1(asked_group, hash);
  first_digest text;
  outcome text;
begin
  if place is null then
    return json_build_object('outcome', 'no-group')::text;
  end if;
  select p.digest into first_digest from wovyr.publications p
  where p.tenant = asked_tenant and p.id >= asked_id and p.id <= asked_id order by p.id limit 1;
  if found and first_digest <> asked_digest then
    return json_build_object('outcome', 'conflict')::text;
  end if;
  outcome := wovyr.ask_1(place, asked_tenant, '', asked_message, 'publish', asked_digest, asked_fact);
  return json_build_object('outcome', case when outcome = 'asked' and first_digest is not null then 'known' else outcome end)::text;
end
$$;
--> statement-breakpoint
-- The oldest requests of the shards after a position. Mostly there is none.
CREATE FUNCTION "wovyr"."requests_1"(asked_shards integer[], after_position bigint, most integer)
RETURNS TABLE ("position" double precision, tenant text, run text, message text, kind text, fact text, shard integer) LANGUAGE plpgsql STABLE
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off
SET plan_cache_mode = force_generic_plan AS $$
begin
  perform from wovyr.requests limit 1;
  if not found then
    return;
  end if;
  return query
  select r.position::double precision, r.tenant, r.run, r.message, r.kind, r.fact, r.shard
  from (
    select m.tid from unnest(asked_shards) s(id) cross join lateral (
      select q.ctid as tid, q.position from wovyr.requests q where q.shard = s.id and q.position > after_position order by q.position limit most
    ) m
    order by m.position limit most
  ) first
  cross join lateral (select q.* from wovyr.requests q where q.ctid = first.tid offset 0) r
  order by r.position;
end
$$;
--> statement-breakpoint
-- Removes requests that are done. Lists of texts as in commit_1.
CREATE FUNCTION "wovyr"."drop_requests_1"(tenants text, runs text, messages text) RETURNS void LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
begin
  delete from wovyr.requests w using (
    select found.tid
    from unnest(string_to_array(tenants, E'\x1f'), string_to_array(runs, E'\x1f'), string_to_array(messages, E'\x1f')) m(tenant, run, message)
    cross join lateral (
      select r.ctid as tid from wovyr.requests r where r.tenant = m.tenant and r.run = m.run and r.message = m.message offset 0
    ) found
    offset 0
  ) t where w.ctid = t.tid;
end
$$;
