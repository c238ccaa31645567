-- Rows are updated in place when their page has room (no index covers what a turn changes), and inboxes and timers come and go.
ALTER TABLE "wovyr"."instances" SET (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05);
--> statement-breakpoint
ALTER TABLE "wovyr"."shards" SET (fillfactor = 20, autovacuum_vacuum_threshold = 1000);
--> statement-breakpoint
ALTER TABLE "wovyr"."inbox" SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.5);
--> statement-breakpoint
ALTER TABLE "wovyr"."timers" SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.5);
--> statement-breakpoint
ALTER TABLE "wovyr"."waits" SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.5);
--> statement-breakpoint
ALTER TABLE "wovyr"."heartbeats" SET (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.05);
--> statement-breakpoint
-- The statuses of runs that may still take turns; `openStatuses` in the port.
CREATE FUNCTION "wovyr"."is_open_1"(status text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  select status in ('open', 'parked', 'paused', 'compensating')
$$;
--> statement-breakpoint
-- Who publishes and who begins to wait for the same take turns by a lock on one of 256 slots: a flush takes few locks, however many keys it waits for.
-- Waits share it, and take it before they look back; a publication has it alone, and takes it before its position and before it looks for waits. So one of
-- the two sees the other, and positions rise in the order of commits. It works on snapshots that are younger than the lock.
CREATE FUNCTION "wovyr"."topic_slot_1"(tenant text, topic text) RETURNS integer LANGUAGE sql IMMUTABLE AS $$
  select hashtext(tenant || E'\x1f' || topic) & 255
$$;
--> statement-breakpoint
-- `positionedFact` in the port.
CREATE FUNCTION "wovyr"."positioned_1"(fact text, "position" bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  select '{"position":' || "position"::text || ',' || substr(fact, 2)
$$;
--> statement-breakpoint
CREATE FUNCTION "wovyr"."check_isolation_1"() RETURNS void LANGUAGE plpgsql AS $$
begin
  if current_setting('transaction_isolation') <> 'read committed' then
    raise exception 'events with keys need the isolation "read committed", and the default of this database or role is "%"; set default_transaction_isolation',
      current_setting('transaction_isolation') using errcode = '25000';
  end if;
end
$$;
--> statement-breakpoint
-- One flush: every turn that its fence and its tail admit becomes durable, whole; the others leave no trace.
--
-- 1. The fence is a share lock on the shards' rows, taken in the order given (that of their numbers) and held to the end of the transaction: a takeover waits for the
--    flush, and a flush that waited for a takeover sees the new epoch.
-- 2. Every write but the guarded update and inserts is filtered by what they admitted.
-- 3. Order: later turns, first turns, children, history, timers, attributes, waits, inboxes (new messages, then what waits find when they look back, then
--    consumed ones, then those that a run hands on, then those of closed runs), dead letters.
-- 4. Every table is reached by an index, whatever the statistics say. A plan made while a table held one row would otherwise walk all of it for ever
--    after. So rows are looked up in lateral subqueries behind `offset 0`, which admit one order of joining, and then changed by their `ctid`.
--    Membership among the flush's own rows is written `(x in (select …)) is true`, which stays a hashed subplan.
--
-- A list of texts comes as one text in which U+001F ends each value (the array made of it has one more element, empty); in nullable ones an empty value
-- stands for null. The first `creates` of the `turns` are first turns; lists of parts name their turn by its place, from 1 on. A message belongs to a
-- child's start (its place), to its rejection (minus its place) or to neither (0). A wait without a key is `after` -1 and does not look back. `done` is null
-- when every turn is done; `receivers` are the turns whose waits found something, or which handed something on.
CREATE FUNCTION "wovyr"."commit_1"(
  creates integer, turns integer,
  fence_shards integer[], fence_epochs bigint[],
  turn_tenants text, turn_runs text, turn_shards integer[], turn_tails integer[], turn_counts integer[], turn_ats bigint[],
  turn_nodes text, turn_nonces text, turn_statuses text, turn_busy boolean[], turn_events text,
  create_ids text, create_workflows text, create_versions text, create_parents text, create_correlations text, create_slots text, create_digests text,
  closings integer[],
  children integer, child_turns integer[], child_runs text, child_shards integer[], child_ids text, child_workflows text, child_versions text,
  child_parents text, child_correlations text, child_slots text, child_digests text,
  timers integer, timer_turns integer[], timer_effects text, timer_dues bigint[],
  timers_done integer, timer_done_turns integer[], timer_done_effects text,
  attribute_sets integer, attribute_turns integer[], attribute_values text,
  messages integer, message_turns integer[], message_children integer[], message_tenants text, message_runs text, message_shards integer[],
  message_ids text, message_facts text,
  consumed integer, consumed_turns integer[], consumed_ids text,
  waits integer, wait_turns integer[], wait_effects text, wait_names text, wait_keys text, wait_topics text, wait_afters bigint[],
  waits_done integer, wait_done_turns integer[], wait_done_effects text,
  letters integer, letter_turns integer[], letter_effects text, letter_kinds text, letter_names text, letter_attempts integer[], letter_failures text,
  letters_done integer, letter_done_turns integer[], letter_done_effects text,
  OUT done text, OUT rejected text, OUT receivers text
) LANGUAGE plpgsql
SET enable_hashjoin = off SET enable_mergejoin = off SET enable_seqscan = off SET enable_material = off SET plan_cache_mode = force_generic_plan
AS $$
declare
  sep constant text := E'\x1f';
  fenced integer[];
  all_fenced boolean;
  tenants text[] := string_to_array(turn_tenants, sep);
  runs text[] := string_to_array(turn_runs, sep);
  nodes text[] := string_to_array(turn_nodes, sep);
  nonces text[] := string_to_array(turn_nonces, sep);
  statuses text[] := string_to_array(turn_statuses, sep);
  events text[] := string_to_array(turn_events, sep);
  ids text[];
  workflows text[];
  versions text[];
  parents text[];
  correlations text[];
  slots text[];
  digests text[];
  texts text[];
  key_tenants text[];
  key_runs text[];
  made_tenants text[];
  made_runs text[];
  made integer := 0;
  updated bigint[];
  created bigint[];
  accepted bigint[];
  all_done boolean;
  born bigint[];
  all_born boolean;
  effects text[];
  names text[];
  keys text[];
  topics text[];
  cut bigint[];
  handed integer[];
begin
  select array_agg(locked.id) into fenced
  from unnest(fence_shards, fence_epochs) f(id, epoch)
  cross join lateral (
    select s.id from wovyr.shards s where s.id = f.id and s.epoch = f.epoch and s.owner is not null for share of s
  ) locked;
  all_fenced := coalesce(cardinality(fenced), 0) = cardinality(fence_shards);
  if cardinality(tenants) <> turns + 1 or cardinality(runs) <> turns + 1 or cardinality(nodes) <> turns + 1 or cardinality(nonces) <> turns + 1
    or cardinality(statuses) <> turns + 1 or cardinality(events) <> turns + 1 then
    raise exception 'a text of a turn holds U+001F' using errcode = '22021';
  end if;

  if waits > 0 then
    effects := string_to_array(wait_effects, sep);
    names := string_to_array(wait_names, sep);
    keys := string_to_array(wait_keys, sep);
    topics := string_to_array(wait_topics, sep);
    if cardinality(effects) <> waits + 1 or cardinality(names) <> waits + 1 or cardinality(keys) <> waits + 1 or cardinality(topics) <> waits + 1 then
      raise exception 'a text of a wait holds U+001F' using errcode = '22021';
    end if;
    -- Before anything that another flush could wait for, and in order.
    perform wovyr.check_isolation_1() where 0 <= any (wait_afters);
    perform pg_advisory_xact_lock_shared(1471238, l.slot) from (
      select distinct wovyr.topic_slot_1(tenants[w.turn], w.topic) as slot
      from unnest(wait_turns, topics, wait_afters) w(turn, topic, after) where w.after >= 0 order by 1
    ) l;
  end if;

  if turns > creates then
    with written as (
      update wovyr.instances i
      set tail = t.tail + t.count, nonce = t.nonce, status = t.status, busy = t.busy,
        closed_at = case when wovyr.is_open_1(t.status) then null else t.at end
      from (
        select u.*, found.tid
        from unnest(tenants, runs, turn_shards, turn_tails, turn_counts, turn_ats, nonces, statuses, turn_busy) with ordinality
          u(tenant, run, shard, tail, count, at, nonce, status, busy, place)
        cross join lateral (select i.ctid as tid from wovyr.instances i where i.tenant = u.tenant and i.run = u.run offset 0) found
        where u.place > creates and u.place <= turns and (all_fenced or (u.shard in (select unnest(fenced))) is true)
        offset 0
      ) t
      -- Judged on the row itself: when it changed meanwhile, its place is not compared again.
      where i.ctid = t.tid and i.run = t.run and i.tail = t.tail and i.shard = t.shard and coalesce(i.closed_at, -1) = -1
      returning t.place
    )
    select array_agg(w.place) into updated from written w;
  end if;

  if creates > 0 then
    ids := string_to_array(create_ids, sep);
    workflows := string_to_array(create_workflows, sep);
    versions := string_to_array(create_versions, sep);
    parents := string_to_array(create_parents, sep, '');
    correlations := string_to_array(create_correlations, sep, '');
    slots := string_to_array(create_slots, sep, '');
    digests := string_to_array(create_digests, sep);
    if cardinality(ids) <> creates + 1 or cardinality(workflows) <> creates + 1 or cardinality(versions) <> creates + 1
      or cardinality(parents) <> creates + 1 or cardinality(correlations) <> creates + 1
      or cardinality(slots) <> creates + 1 or cardinality(digests) <> creates + 1 then
      raise exception 'a text of a new instance holds U+001F' using errcode = '22021';
    end if;
    if slots is not null then
      with kept as (
        insert into wovyr.start_keys (at, tenant, slot, run, digest)
        select c.at, c.tenant, c.slot, c.run, c.digest
        from unnest(tenants, runs, turn_shards, turn_ats, slots, digests) with ordinality c(tenant, run, shard, at, slot, digest, place)
        where c.place <= creates and c.slot is not null and (all_fenced or (c.shard in (select unnest(fenced))) is true)
        on conflict do nothing returning tenant, run
      )
      select array_agg(k.tenant), array_agg(k.run) into key_tenants, key_runs from kept k;
    end if;
    with written as (
      insert into wovyr.instances
        (created_at, closed_at, shard, tail, busy, tenant, run, id, workflow, version, status, nonce, parent, correlation_id)
      select c.at, case when wovyr.is_open_1(c.status) then null else c.at end, c.shard, c.count, c.busy, c.tenant, c.run, c.id, c.workflow,
        c.version, c.status, c.nonce, c.parent, c.correlation
      from unnest(tenants, runs, turn_shards, turn_counts, turn_ats, nonces, statuses, turn_busy, ids, workflows, versions, parents, correlations, slots)
        with ordinality c(tenant, run, shard, count, at, nonce, status, busy, id, workflow, version, parent, correlation, slot, place)
      where c.place <= creates and (all_fenced or (c.shard in (select unnest(fenced))) is true)
        and (c.slot is null or ((c.tenant, c.run) in (select * from unnest(key_tenants, key_runs))) is true)
        -- The index of open ids does not guard a run that closes at once.
        and (wovyr.is_open_1(c.status)
          or (select true from wovyr.instances i where i.tenant = c.tenant and i.id = c.id and i.closed_at is null limit 1) is null)
      on conflict do nothing returning tenant, run
    )
    select array_agg(w.tenant), array_agg(w.run), count(*) into made_tenants, made_runs, made from written w;
    if made < creates then
      select array_agg(c.place) into created from unnest(tenants, runs) with ordinality c(tenant, run, place)
      where c.place <= creates and ((c.tenant, c.run) in (select * from unnest(made_tenants, made_runs))) is true;
      if key_runs is not null then
        delete from wovyr.start_keys s using (
          select found.tid from unnest(tenants, runs, slots) with ordinality c(tenant, run, slot, place)
          cross join lateral (
            select k.ctid as tid from wovyr.start_keys k where k.tenant = c.tenant and k.slot = c.slot and k.run = c.run offset 0
          ) found
          where c.place <= creates and ((c.tenant, c.run) in (select * from unnest(key_tenants, key_runs))) is true
            and ((c.tenant, c.run) in (select * from unnest(made_tenants, made_runs))) is not true
          offset 0
        ) t where s.ctid = t.tid;
      end if;
    end if;
  end if;

  all_done := made = creates and coalesce(cardinality(updated), 0) = turns - creates;
  if not all_done then
    if made = creates then
      select array_agg(place) into created from generate_series(1, creates) place;
    end if;
    accepted := coalesce(updated, '{}') || coalesce(created, '{}');
    done := accepted::text;
    if cardinality(accepted) = 0 then
      return;
    end if;
  end if;

  if children > 0 then
    ids := string_to_array(child_ids, sep);
    texts := string_to_array(child_runs, sep);
    workflows := string_to_array(child_workflows, sep);
    versions := string_to_array(child_versions, sep);
    parents := string_to_array(child_parents, sep, '');
    correlations := string_to_array(child_correlations, sep, '');
    slots := string_to_array(child_slots, sep, '');
    digests := string_to_array(child_digests, sep);
    key_tenants := null;
    key_runs := null;
    if cardinality(ids) <> children + 1 or cardinality(texts) <> children + 1 or cardinality(workflows) <> children + 1
      or cardinality(versions) <> children + 1 or cardinality(parents) <> children + 1 or cardinality(correlations) <> children + 1
      or cardinality(slots) <> children + 1 or cardinality(digests) <> children + 1 then
      raise exception 'a text of a child holds U+001F' using errcode = '22021';
    end if;
    if slots is not null then
      with kept as (
        insert into wovyr.start_keys (at, tenant, slot, run, digest)
        select turn_ats[c.turn], tenants[c.turn], c.slot, c.run, c.digest
        from unnest(child_turns, texts, slots, digests) with ordinality c(turn, run, slot, digest, place)
        where c.place <= children and c.slot is not null and (all_done or (c.turn in (select unnest(accepted))) is true)
        on conflict do nothing returning tenant, run
      )
      select array_agg(k.tenant), array_agg(k.run) into key_tenants, key_runs from kept k;
    end if;
    with written as (
      insert into wovyr.instances
        (created_at, closed_at, shard, tail, busy, tenant, run, id, workflow, version, status, nonce, parent, correlation_id)
      select turn_ats[c.turn], null, c.shard, 0, false, tenants[c.turn], c.run, c.id, c.workflow, c.version, 'open', '', c.parent, c.correlation
      from unnest(child_turns, texts, child_shards, ids, workflows, versions, parents, correlations, slots) with ordinality
        c(turn, run, shard, id, workflow, version, parent, correlation, slot, place)
      where c.place <= children and (all_done or (c.turn in (select unnest(accepted))) is true)
        and (c.slot is null or ((tenants[c.turn], c.run) in (select * from unnest(key_tenants, key_runs))) is true)
      on conflict do nothing returning tenant, run
    )
    select array_agg(w.tenant), array_agg(w.run), count(*) into made_tenants, made_runs, made from written w;
    all_born := made = children;
    if not all_born then
      select array_agg(c.place) into born from unnest(child_turns, texts) with ordinality c(turn, run, place)
      where c.place <= children and ((tenants[c.turn], c.run) in (select * from unnest(made_tenants, made_runs))) is true;
      select array_agg(c.place)::text into rejected from unnest(child_turns) with ordinality c(turn, place)
      where (all_done or (c.turn in (select unnest(accepted))) is true) and (c.place in (select unnest(born))) is not true;
      if key_runs is not null then
        delete from wovyr.start_keys s using (
          select found.tid from unnest(child_turns, texts, slots) with ordinality c(turn, run, slot, place)
          cross join lateral (
            select k.ctid as tid from wovyr.start_keys k where k.tenant = tenants[c.turn] and k.slot = c.slot and k.run = c.run offset 0
          ) found
          where c.place <= children and ((tenants[c.turn], c.run) in (select * from unnest(key_tenants, key_runs))) is true
            and ((tenants[c.turn], c.run) in (select * from unnest(made_tenants, made_runs))) is not true
          offset 0
        ) t where s.ctid = t.tid;
      end if;
    end if;
  end if;

  insert into wovyr.history (at, seq, count, tenant, run, node, events)
  select t.at, t.tail + 1, t.count, t.tenant, t.run, t.node, t.events
  from unnest(tenants, runs, turn_tails, turn_counts, turn_ats, nodes, events) with ordinality t(tenant, run, tail, count, at, node, events, place)
  where t.place <= turns and (all_done or (t.place in (select unnest(accepted))) is true);

  if timers_done > 0 then
    texts := string_to_array(timer_done_effects, sep);
    if cardinality(texts) <> timers_done + 1 then
      raise exception 'an effect holds U+001F' using errcode = '22021';
    end if;
    delete from wovyr.timers w using (
      select found.tid from unnest(timer_done_turns, texts) with ordinality c(turn, effect, place)
      cross join lateral (
        select r.ctid as tid from wovyr.timers r where r.tenant = tenants[c.turn] and r.run = runs[c.turn] and r.effect = c.effect offset 0
      ) found
      where c.place <= timers_done and (all_done or (c.turn in (select unnest(accepted))) is true)
      offset 0
    ) t where w.ctid = t.tid;
  end if;

  if timers > 0 then
    texts := string_to_array(timer_effects, sep);
    if cardinality(texts) <> timers + 1 then
      raise exception 'an effect holds U+001F' using errcode = '22021';
    end if;
    insert into wovyr.timers as w (due, shard, tenant, run, effect)
    select t.due, turn_shards[t.turn], tenants[t.turn], runs[t.turn], t.effect
    from unnest(timer_turns, texts, timer_dues) with ordinality t(turn, effect, due, place)
    where t.place <= timers and (all_done or (t.turn in (select unnest(accepted))) is true)
    on conflict (tenant, run, effect) do update set due = excluded.due;
  end if;

  if attribute_sets > 0 then
    texts := string_to_array(attribute_values, sep, '');
    if cardinality(texts) <> attribute_sets + 1 then
      raise exception 'an attribute holds U+001F' using errcode = '22021';
    end if;
    delete from wovyr.instance_attributes w using (
      select found.tid from unnest(attribute_turns, texts) with ordinality c(turn, value, place)
      cross join lateral (
        select r.ctid as tid from wovyr.instance_attributes r where r.tenant = tenants[c.turn] and r.run = runs[c.turn] offset 0
      ) found
      where c.place <= attribute_sets and (all_done or (c.turn in (select unnest(accepted))) is true)
      offset 0
    ) t where w.ctid = t.tid;
    insert into wovyr.instance_attributes (tenant, run, attributes)
    select tenants[t.turn], runs[t.turn], t.value::jsonb from unnest(attribute_turns, texts) with ordinality t(turn, value, place)
    where t.place <= attribute_sets and t.value is not null and (all_done or (t.turn in (select unnest(accepted))) is true);
  end if;

  if waits_done > 0 then
    texts := string_to_array(wait_done_effects, sep);
    if cardinality(texts) <> waits_done + 1 then
      raise exception 'an effect holds U+001F' using errcode = '22021';
    end if;
    delete from wovyr.waits w using (
      select found.tid from unnest(wait_done_turns, texts) with ordinality c(turn, effect, place)
      cross join lateral (
        select r.ctid as tid from wovyr.waits r where r.tenant = tenants[c.turn] and r.run = runs[c.turn] and r.effect = c.effect offset 0
      ) found
      where c.place <= waits_done and (all_done or (c.turn in (select unnest(accepted))) is true)
      offset 0
    ) t where w.ctid = t.tid;
  end if;

  if waits > 0 then
    insert into wovyr.waits as w (shard, tenant, run, effect, name, key, topic)
    select turn_shards[t.turn], tenants[t.turn], runs[t.turn], t.effect, t.name, case when t.after >= 0 then t.key end, t.topic
    from unnest(wait_turns, effects, names, keys, topics, wait_afters) with ordinality t(turn, effect, name, key, topic, after, place)
    where t.place <= waits and (all_done or (t.turn in (select unnest(accepted))) is true)
    on conflict (tenant, run, effect) do update set name = excluded.name, key = excluded.key, topic = excluded.topic;
  end if;

  if messages > 0 then
    ids := string_to_array(message_ids, sep);
    parents := string_to_array(message_tenants, sep);
    texts := string_to_array(message_runs, sep);
    versions := string_to_array(message_facts, sep);
    if cardinality(ids) <> messages + 1 or cardinality(parents) <> messages + 1 or cardinality(texts) <> messages + 1
      or cardinality(versions) <> messages + 1 then
      raise exception 'a text of a message holds U+001F' using errcode = '22021';
    end if;
    insert into wovyr.inbox (shard, tenant, run, message, fact)
    select m.shard, m.tenant, m.run, m.id, m.fact
    from unnest(message_turns, message_children, parents, texts, message_shards, ids, versions) with ordinality
      m(turn, child, tenant, run, shard, id, fact, place)
    where m.place <= messages and (all_done or (m.turn in (select unnest(accepted))) is true)
      and (m.child = 0 or (m.child > 0 and (all_born or (m.child in (select unnest(born))) is true))
        or (m.child < 0 and not all_born and (-m.child in (select unnest(born))) is not true))
      and (select coalesce(i.closed_at, -1) = -1 from wovyr.instances i where i.tenant = m.tenant and i.run = m.run)
    on conflict do nothing;
  end if;

  if waits > 0 then
    with seen as (
      select w.turn, w.place, p.position, p.id, p.fact
      from unnest(wait_turns, topics, wait_afters) with ordinality w(turn, topic, after, place)
      cross join lateral (
        select p.position, p.id, p.fact from wovyr.publications p
        where p.tenant = tenants[w.turn] and p.topic = w.topic and p.position > w.after order by p.position limit 100
      ) p
      where w.place <= waits and w.after >= 0 and (all_done or (w.turn in (select unnest(accepted))) is true)
    ), posted as (
      insert into wovyr.inbox (shard, tenant, run, message, fact)
      select turn_shards[s.turn], tenants[s.turn], runs[s.turn], 'publication:' || s.id, wovyr.positioned_1(s.fact, s.position)
      from seen s order by s.place, s.position
      on conflict do nothing
    )
    select array_agg(distinct s.turn)::text, array(select s.place from seen s group by s.place having count(*) = 100)
    into receivers, cut from seen s;
    -- There may be more: what is published from now on may not come before those.
    if cardinality(cut) > 0 then
      delete from wovyr.waits w using (
        select found.tid from unnest(wait_turns, effects) with ordinality c(turn, effect, place)
        cross join lateral (
          select r.ctid as tid from wovyr.waits r where r.tenant = tenants[c.turn] and r.run = runs[c.turn] and r.effect = c.effect offset 0
        ) found
        where (c.place in (select unnest(cut))) is true
        offset 0
      ) t where w.ctid = t.tid;
    end if;
  end if;

  if consumed > 0 then
    texts := string_to_array(consumed_ids, sep);
    if cardinality(texts) <> consumed + 1 then
      raise exception 'the name of a message holds U+001F' using errcode = '22021';
    end if;
    delete from wovyr.inbox w using (
      select found.tid from unnest(consumed_turns, texts) with ordinality c(turn, message, place)
      cross join lateral (
        select r.ctid as tid from wovyr.inbox r where r.tenant = tenants[c.turn] and r.run = runs[c.turn] and r.message = c.message offset 0
      ) found
      where c.place <= consumed and (all_done or (c.turn in (select unnest(accepted))) is true)
      offset 0
    ) t where w.ctid = t.tid;
  end if;

  -- What a run was told and has not applied is for the one that goes on from it, which has its id.
  if children > 0 and 'ContinuedAsNew' = any (statuses) then
    ids := string_to_array(child_ids, sep);
    texts := string_to_array(child_runs, sep);
    with moved as (
      delete from wovyr.inbox w using (
        select c.turn, next.run, next.shard, found.tid
        from unnest(closings) c(turn)
        cross join lateral (select i.id from wovyr.instances i where i.tenant = tenants[c.turn] and i.run = runs[c.turn] offset 0) old
        cross join lateral (
          select k.run, k.shard from unnest(child_turns, texts, child_shards, ids) with ordinality k(turn, run, shard, id, place)
          where k.turn = c.turn and k.id = old.id and k.place <= children and (all_born or (k.place in (select unnest(born))) is true) limit 1
        ) next
        cross join lateral (
          select r.ctid as tid from wovyr.inbox r
          where r.tenant = tenants[c.turn] and r.run = runs[c.turn] and r.message like 'publication:%' offset 0
        ) found
        where statuses[c.turn] = 'ContinuedAsNew' and (all_done or (c.turn in (select unnest(accepted))) is true)
        offset 0
      ) t where w.ctid = t.tid
      returning t.turn, t.shard, w.tenant, t.run, w.message, w.fact, w.position
    ), kept as (
      -- At new places, after the start.
      insert into wovyr.inbox (shard, tenant, run, message, fact)
      select m.shard, m.tenant, m.run, m.message, m.fact from moved m order by m.position
    )
    select array_agg(distinct m.turn) into handed from moved m;
    if handed is not null then
      receivers := (coalesce(receivers::integer[], '{}') || handed)::text;
    end if;
  end if;

  if letters_done > 0 then
    texts := string_to_array(letter_done_effects, sep);
    if cardinality(texts) <> letters_done + 1 then
      raise exception 'an effect holds U+001F' using errcode = '22021';
    end if;
    delete from wovyr.dead_letters w using (
      select found.tid from unnest(letter_done_turns, texts) with ordinality c(turn, effect, place)
      cross join lateral (
        select r.ctid as tid from wovyr.dead_letters r where r.tenant = tenants[c.turn] and r.run = runs[c.turn] and r.effect = c.effect offset 0
      ) found
      where c.place <= letters_done and (all_done or (c.turn in (select unnest(accepted))) is true)
      offset 0
    ) t where w.ctid = t.tid;
  end if;

  if cardinality(closings) > 0 then
    delete from wovyr.inbox w using (
      select found.tid from unnest(closings) c(turn)
      cross join lateral (select r.ctid as tid from wovyr.inbox r where r.tenant = tenants[c.turn] and r.run = runs[c.turn] offset 0) found
      where all_done or (c.turn in (select unnest(accepted))) is true
      offset 0
    ) t where w.ctid = t.tid;
    delete from wovyr.timers w using (
      select found.tid from unnest(closings) c(turn)
      cross join lateral (select r.ctid as tid from wovyr.timers r where r.tenant = tenants[c.turn] and r.run = runs[c.turn] offset 0) found
      where all_done or (c.turn in (select unnest(accepted))) is true
      offset 0
    ) t where w.ctid = t.tid;
    delete from wovyr.waits w using (
      select found.tid from unnest(closings) c(turn)
      cross join lateral (select r.ctid as tid from wovyr.waits r where r.tenant = tenants[c.turn] and r.run = runs[c.turn] offset 0) found
      where all_done or (c.turn in (select unnest(accepted))) is true
      offset 0
    ) t where w.ctid = t.tid;
    delete from wovyr.dead_letters w using (
      select found.tid from unnest(closings) c(turn)
      cross join lateral (
        select r.ctid as tid from wovyr.dead_letters r
        where r.tenant = tenants[c.turn] and r.run = runs[c.turn] and r.kind in ('activity', 'compensation') offset 0
      ) found
      where all_done or (c.turn in (select unnest(accepted))) is true
      offset 0
    ) t where w.ctid = t.tid;
  end if;

  if letters > 0 then
    effects := string_to_array(letter_effects, sep);
    names := string_to_array(letter_names, sep);
    texts := string_to_array(letter_kinds, sep);
    events := string_to_array(letter_failures, sep);
    if cardinality(effects) <> letters + 1 or cardinality(names) <> letters + 1 or cardinality(texts) <> letters + 1
      or cardinality(events) <> letters + 1 then
      raise exception 'a text of a dead letter holds U+001F' using errcode = '22021';
    end if;
    insert into wovyr.dead_letters as w (at, attempts, tenant, run, effect, kind, workflow, id, name, failure)
    select turn_ats[t.turn], t.attempts, tenants[t.turn], runs[t.turn], t.effect, t.kind, i.workflow, i.id, t.name, t.failure
    from unnest(letter_turns, effects, texts, names, letter_attempts, events) with ordinality t(turn, effect, kind, name, attempts, failure, place)
    cross join lateral (select r.workflow, r.id from wovyr.instances r where r.tenant = tenants[t.turn] and r.run = runs[t.turn] offset 0) i
    where t.place <= letters and (all_done or (t.turn in (select unnest(accepted))) is true)
    on conflict (tenant, run, effect) do update
      set at = excluded.at, attempts = excluded.attempts, kind = excluded.kind, workflow = excluded.workflow, id = excluded.id,
        name = excluded.name, failure = excluded.failure;
  end if;
end
$$;
--> statement-breakpoint
-- A flush of one turn that writes nothing but its run: what `commit_1` does with it, without the cost of lists, which is most of what a turn takes that comes
-- alone. True when it is durable.
CREATE FUNCTION "wovyr"."commit_alone_1"(
  turn_shard integer, turn_epoch bigint, turn_tenant text, turn_run text, turn_tail integer, turn_count integer, turn_at bigint,
  turn_node text, turn_nonce text, turn_status text, turn_busy boolean, turn_events text,
  create_id text, create_workflow text, create_version text, create_parent text, create_correlation text, create_slot text, create_digest text
) RETURNS boolean LANGUAGE plpgsql SET enable_seqscan = off AS $$
declare
  is_open constant boolean := wovyr.is_open_1(turn_status);
begin
  perform from wovyr.shards s where s.id = turn_shard and s.epoch = turn_epoch and s.owner is not null for share;
  if not found then
    return false;
  end if;
  if create_id is null then
    update wovyr.instances i
    set tail = turn_tail + turn_count, nonce = turn_nonce, status = turn_status, busy = turn_busy, closed_at = case when is_open then null else turn_at end
    where i.tenant = turn_tenant and i.run = turn_run and i.tail = turn_tail and i.shard = turn_shard and coalesce(i.closed_at, -1) = -1;
    if not found then
      return false;
    end if;
  else
    if create_slot is not null then
      insert into wovyr.start_keys (at, tenant, slot, run, digest)
      values (turn_at, turn_tenant, create_slot, turn_run, create_digest) on conflict do nothing;
      if not found then
        return false;
      end if;
    end if;
    insert into wovyr.instances
      (created_at, closed_at, shard, tail, busy, tenant, run, id, workflow, version, status, nonce, parent, correlation_id)
    select turn_at, case when is_open then null else turn_at end, turn_shard, turn_count, turn_busy, turn_tenant, turn_run, create_id, create_workflow,
      create_version, turn_status, turn_nonce, create_parent, create_correlation
    -- The index of open ids does not guard a run that closes at once.
    where is_open or not exists (select from wovyr.instances i where i.tenant = turn_tenant and i.id = create_id and i.closed_at is null)
    on conflict do nothing;
    if not found then
      if create_slot is not null then
        delete from wovyr.start_keys k where k.tenant = turn_tenant and k.slot = create_slot and k.run = turn_run;
      end if;
      return false;
    end if;
  end if;
  insert into wovyr.history (at, seq, count, tenant, run, node, events)
  values (turn_at, turn_tail + 1, turn_count, turn_tenant, turn_run, turn_node, turn_events);
  if not is_open then
    delete from wovyr.inbox r where r.tenant = turn_tenant and r.run = turn_run;
    delete from wovyr.timers r where r.tenant = turn_tenant and r.run = turn_run;
    delete from wovyr.waits r where r.tenant = turn_tenant and r.run = turn_run;
    delete from wovyr.dead_letters r where r.tenant = turn_tenant and r.run = turn_run and r.kind in ('activity', 'compensation');
  end if;
  return true;
end
$$;
