CREATE TABLE "wovyr"."tasks" (
	"position" bigserial NOT NULL,
	"due" bigint,
	"start_by" bigint,
	"close_by" bigint,
	"lease_until" bigint,
	"run_until" bigint,
	"beat_until" bigint,
	"run_within" bigint,
	"beat_within" bigint,
	"since" bigint NOT NULL,
	"shard" integer NOT NULL,
	"priority" integer NOT NULL,
	"attempt" integer NOT NULL,
	"losses" integer NOT NULL,
	"state" text collate "C" NOT NULL,
	"tenant" text collate "C" NOT NULL,
	"run" text collate "C" NOT NULL,
	"effect" text collate "C" NOT NULL,
	"queue" text collate "C" NOT NULL,
	"name" text collate "C" NOT NULL,
	"requires" text collate "C" NOT NULL,
	"token" text collate "C",
	"worker" text collate "C" NOT NULL,
	"ended" text collate "C",
	"about" text collate "C" NOT NULL,
	"details" text collate "C",
	"input" text collate "C" NOT NULL,
	CONSTRAINT "tasks_pk" PRIMARY KEY("tenant","run","effect")
);
--> statement-breakpoint
CREATE TABLE "wovyr"."settled_tasks" (
	"at" bigint NOT NULL,
	"token" text collate "C" NOT NULL,
	"digest" text collate "C" NOT NULL,
	CONSTRAINT "settled_tasks_pk" PRIMARY KEY("token")
);
--> statement-breakpoint
CREATE TABLE "wovyr"."workers" (
	"seen_at" bigint NOT NULL,
	"until" bigint NOT NULL,
	"id" text collate "C" NOT NULL,
	"takes" text collate "C" NOT NULL,
	"about" text collate "C" NOT NULL,
	CONSTRAINT "workers_pk" PRIMARY KEY("id")
);
--> statement-breakpoint
CREATE INDEX "tasks_waiting" ON "wovyr"."tasks" USING btree ("queue","priority","tenant","position") WHERE "wovyr"."tasks"."state" = 'waiting';
--> statement-breakpoint
CREATE UNIQUE INDEX "tasks_token" ON "wovyr"."tasks" USING btree ("token") WHERE "wovyr"."tasks"."token" is not null;
--> statement-breakpoint
CREATE INDEX "tasks_due" ON "wovyr"."tasks" USING btree ("due") WHERE "wovyr"."tasks"."due" is not null;
--> statement-breakpoint
CREATE INDEX "settled_tasks_at" ON "wovyr"."settled_tasks" USING btree ("at");
--> statement-breakpoint
ALTER TABLE "wovyr"."tasks" SET (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.5);
--> statement-breakpoint
-- Tasks of task queues: attempts of activities that workers in other processes make. `engine/ports/tasks.ts` says what each function promises.
--
-- 1. A task is 'waiting', 'leased' (it has a token) or 'ended' (its lease or a time limit has passed, and its run is to be told). `due` is when somebody has
--    to look at it, whatever the reason.
-- 2. Leases and limits go by this clock, in milliseconds since the epoch.
-- 3. Lists come as JSON. Every table is reached by an index, whatever the statistics say, as in `commit_1`; but rows are changed by their keys, never by their
--    `ctid`: others change them meanwhile (a sign of life comes while a task is handed back), and the change then goes on from theirs.
CREATE FUNCTION "wovyr"."now_1"() RETURNS bigint LANGUAGE sql VOLATILE AS $$
  select (extract(epoch from clock_timestamp()) * 1000)::bigint
$$;
--> statement-breakpoint
-- The part of a flush that is about tasks: called in the statement that commits it, with what `commit_1` said (`done` null: all turns), and only for flushes
-- that have such a part. `items` are turns by their place, from 1 on: {turn, tenant, run, shard, done, tasks}.
CREATE FUNCTION "wovyr"."commit_tasks_1"(done text, items text) RETURNS void LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
declare
  accepted bigint[] := done::bigint[];
  at bigint := wovyr.now_1();
begin
  delete from wovyr.tasks w using (
    select i.tenant, i.run, d.effect
    from json_to_recordset(items::json) i(turn bigint, tenant text, run text, done json)
    cross join lateral json_array_elements_text(i.done) d(effect)
    where accepted is null or i.turn = any (accepted)
    offset 0
  ) t where w.tenant = t.tenant and w.run = t.run and w.effect = t.effect;
  insert into wovyr.tasks as w
    (due, start_by, close_by, run_within, beat_within, since, shard, priority, attempt, losses, state, tenant, run, effect, queue, name, requires, worker, about,
      details, input)
  select least(at + t."startWithin", at + t."closeWithin"), at + t."startWithin", at + t."closeWithin", t."runWithin", t."beatWithin", at, i.shard, t.priority,
    t.attempt, t.losses, 'waiting', i.tenant, i.run, t.effect, t.queue, t.name, array_to_string(t.requires, ' '), '', t.about, t.details, t.input
  from json_to_recordset(items::json) i(turn bigint, tenant text, run text, shard integer, tasks json)
  cross join lateral json_to_recordset(i.tasks) t(effect text, queue text, name text, attempt integer, losses integer, priority integer, requires text[],
    input text, details text, about text, "startWithin" bigint, "closeWithin" bigint, "runWithin" bigint, "beatWithin" bigint)
  where accepted is null or i.turn = any (accepted)
  on conflict (tenant, run, effect) do update set
    due = excluded.due, start_by = excluded.start_by, close_by = excluded.close_by, lease_until = null, run_until = null, beat_until = null,
    run_within = excluded.run_within, beat_within = excluded.beat_within, since = excluded.since, shard = excluded.shard, priority = excluded.priority,
    attempt = excluded.attempt, losses = excluded.losses, state = 'waiting', queue = excluded.queue, name = excluded.name, requires = excluded.requires,
    token = null, worker = '', ended = null, about = excluded.about, details = excluded.details, input = excluded.input;
end
$$;
--> statement-breakpoint
-- Within a priority the tenants that have a task come one after the other, from the one after `after_tenant` on, each by a probe of the index: a backlog of one
-- is passed over and never read. What is left after one task each is shared out in further rounds.
CREATE FUNCTION "wovyr"."claim_tasks_1"(
  asked_queue text, asked_activities text[], asked_labels text[], workers text[], tokens text[], lease bigint, after_tenant text
) RETURNS TABLE("token" text, "worker" text, "tenant" text, "run" text, "effect" text, "name" text, "attempt" integer, "input" text, "about" text, "details" text)
LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = on
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
declare
  wanted integer := cardinality(tokens);
  claimed integer := 0;
  level integer := -1;
  tenants text[];
  one text;
  found_in text;
  share integer;
  got integer;
  round_got integer;
  at bigint := wovyr.now_1();
begin
  while claimed < wanted loop
    select t.priority into level from wovyr.tasks t where t.state = 'waiting' and t.queue = asked_queue and t.priority > level
    order by t.priority limit 1;
    exit when not found;
    tenants := '{}';
    found_in := after_tenant;
    -- The tenants after the one that was served last, then those up to it.
    loop
      select t.tenant into one from wovyr.tasks t
      where t.state = 'waiting' and t.queue = asked_queue and t.priority = level and t.tenant > found_in order by t.tenant limit 1;
      exit when not found or cardinality(tenants) >= wanted;
      tenants := tenants || one;
      found_in := one;
    end loop;
    found_in := '';
    loop
      exit when cardinality(tenants) >= wanted;
      select t.tenant into one from wovyr.tasks t
      where t.state = 'waiting' and t.queue = asked_queue and t.priority = level and t.tenant > found_in and t.tenant <= after_tenant
      order by t.tenant limit 1;
      exit when not found;
      tenants := tenants || one;
      found_in := one;
    end loop;
    share := 1;
    loop
      round_got := 0;
      foreach one in array tenants loop
        exit when claimed >= wanted;
        return query
        with chosen as materialized (
          select t.tenant, t.run, t.effect, t.position from wovyr.tasks t
          where t.state = 'waiting' and t.queue = asked_queue and t.priority = level and t.tenant = one
            and (asked_activities is null or t.name = any (asked_activities)) and string_to_array(t.requires, ' ') <@ asked_labels
          order by t.position limit least(share, wanted - claimed) for update skip locked
        ), numbered as materialized (
          select c.tenant, c.run, c.effect, claimed + row_number() over (order by c.position) as place from chosen c
        )
        update wovyr.tasks w set state = 'leased', token = tokens[n.place], worker = workers[n.place], lease_until = at + lease,
          run_until = at + w.run_within, beat_until = at + w.beat_within,
          due = least(at + lease, w.close_by, at + w.run_within, at + w.beat_within)
        from numbered n where w.tenant = n.tenant and w.run = n.run and w.effect = n.effect
        returning w.token, w.worker, w.tenant, w.run, w.effect, w.name, w.attempt, w.input, w.about, w.details;
        get diagnostics got = row_count;
        claimed := claimed + got;
        round_got := round_got + got;
      end loop;
      exit when claimed >= wanted or round_got = 0;
      share := greatest(1, (wanted - claimed) / greatest(1, cardinality(tenants)));
    end loop;
  end loop;
end
$$;
--> statement-breakpoint
CREATE FUNCTION "wovyr"."renew_tasks_1"(items text) RETURNS SETOF text LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
declare
  at bigint := wovyr.now_1();
begin
  return query
  update wovyr.tasks w set lease_until = at + t.lease, beat_until = case when t.beat then at + w.beat_within else w.beat_until end,
    due = least(at + t.lease, w.close_by, w.run_until, case when t.beat then at + w.beat_within else w.beat_until end),
    details = coalesce(t.details, w.details)
  from (
    select i.* from json_to_recordset(items::json) i(token text, lease bigint, beat boolean, details text) order by i.token offset 0
  ) t where w.token = t.token
  returning w.token;
end
$$;
--> statement-breakpoint
CREATE FUNCTION "wovyr"."release_tasks_1"(tokens text[]) RETURNS TABLE("token" text, "queue" text) LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
declare
  at bigint := wovyr.now_1();
begin
  return query
  update wovyr.tasks w set state = 'waiting', since = at, token = null, worker = '', lease_until = null, run_until = null, beat_until = null,
    due = least(w.start_by, w.close_by)
  from (select i.token from unnest(tokens) i(token) order by i.token offset 0) t where w.token = t.token
  returning t.token, w.queue;
end
$$;
--> statement-breakpoint
-- `kind` is 'settled', 'known' or 'refused'; with 'settled' comes the message that lies in the inbox of the run now. `settledFact` makes the same fact.
CREATE FUNCTION "wovyr"."settle_tasks_1"(items text)
RETURNS TABLE("place" integer, "kind" text, "tenant" text, "run" text, "shard" integer, "message" text, "fact" text) LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
declare
  at bigint := wovyr.now_1();
  item record;
  task record;
  before text;
begin
  for item in
    select i.place, i.token, i.digest, i.fact from json_to_recordset(items::json) i(place integer, token text, digest text, fact text) order by i.token
  loop
    delete from wovyr.tasks w where w.token = item.token and w.token is not null
    returning w.tenant, w.run, w.effect, w.attempt, w.shard, w.details into task;
    if not found then
      select s.digest into before from wovyr.settled_tasks s where s.token = item.token;
      return query select item.place, case when found and before = item.digest then 'known' else 'refused' end,
        null::text, null::text, null::integer, null::text, null::text;
      continue;
    end if;
    insert into wovyr.settled_tasks (at, token, digest) values (at, item.token, item.digest);
    place := item.place;
    kind := 'settled';
    tenant := task.tenant;
    run := task.run;
    shard := task.shard;
    message := 'outcome:' || task.effect || ':' || task.attempt;
    fact := '{"effect":' || to_json(task.effect)::text || ',"attempt":' || task.attempt || ','
      || coalesce('"heartbeat":' || to_json(task.details)::text || ',', '') || substr(item.fact, 2);
    insert into wovyr.inbox (shard, tenant, run, message, fact)
    select task.shard, task.tenant, task.run, "settle_tasks_1".message, "settle_tasks_1".fact
    where (select coalesce(i.closed_at, -1) = -1 from wovyr.instances i where i.tenant = task.tenant and i.run = task.run)
    on conflict do nothing;
    return next;
  end loop;
end
$$;
--> statement-breakpoint
-- What is found stays 'ended' until a turn has seen to it, and is found again after `again` milliseconds. `next_in` and `waits` are on the last row, which tells
-- of no task; where there is none, no task waits, and none has to be looked at.
CREATE FUNCTION "wovyr"."sweep_tasks_1"(shards integer[], most integer, again bigint)
RETURNS TABLE("tenant" text, "run" text, "effect" text, "name" text, "attempt" integer, "losses" integer, "about" text, "ended" text, "worker" text,
  "details" text, "next_in" double precision, "shard" integer, "waits" boolean)
LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
declare
  at bigint := wovyr.now_1();
  next bigint;
begin
  return query
  with chosen as materialized (
    select t.tenant, t.run, t.effect from wovyr.tasks t where t.due is not null and t.due <= at and t.shard = any (shards)
    order by t.due limit most for update skip locked
  )
  update wovyr.tasks w set state = 'ended', token = null, due = at + again,
    ended = case
      when w.state = 'ended' then w.ended
      when w.state = 'waiting' then case when w.start_by < coalesce(w.close_by, w.start_by + 1) then 'scheduleToStart' else 'scheduleToClose' end
      when w.close_by = w.due then 'scheduleToClose'
      when w.run_until = w.due then 'startToClose'
      when w.beat_until = w.due then 'heartbeat'
      else 'lost'
    end
  from chosen c where w.tenant = c.tenant and w.run = c.run and w.effect = c.effect
  returning w.tenant, w.run, w.effect, w.name, w.attempt, w.losses, w.about, w.ended, w.worker, w.details, null::double precision, w.shard, null::boolean;
  select t.due into next from wovyr.tasks t where t.due is not null and t.shard = any (shards) order by t.due limit 1;
  waits := exists (select from wovyr.tasks t where t.state = 'waiting');
  if next is not null or waits then
    next_in := case when next is not null then greatest(0, next - at) end;
    return next;
  end if;
end
$$;
--> statement-breakpoint
-- Each queue in which tasks wait is one probe of the index, and one that nobody takes from is read until a task is found that has waited for so long.
CREATE FUNCTION "wovyr"."waiting_queues_1"(taken text[], longest bigint, most integer)
RETURNS TABLE("queue" text, "shard" integer, "waited" double precision) LANGUAGE plpgsql STABLE
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
declare
  at bigint := wovyr.now_1();
  one text := '';
begin
  for place in 1 .. most loop
    select t.queue into one from wovyr.tasks t where t.state = 'waiting' and t.queue > one order by t.queue limit 1;
    exit when not found;
    shard := null;
    waited := null;
    if not one = any (taken) then
      select t.shard, at - t.since into shard, waited from wovyr.tasks t
      where t.state = 'waiting' and t.queue = one and t.since <= at - longest
      order by t.priority, t.tenant, t.position limit 1;
    end if;
    queue := one;
    return next;
  end loop;
end
$$;
--> statement-breakpoint
CREATE FUNCTION "wovyr"."save_workers_1"(items text) RETURNS void LANGUAGE plpgsql AS $$
declare
  at bigint := wovyr.now_1();
begin
  insert into wovyr.workers as w (seen_at, until, id, takes, about)
  select at, at + i.within, i.id, i.takes, i.about from json_to_recordset(items::json) i(id text, takes text, about text, within bigint) order by i.id
  on conflict (id) do update set seen_at = excluded.seen_at, until = excluded.until, takes = excluded.takes, about = excluded.about;
end
$$;
