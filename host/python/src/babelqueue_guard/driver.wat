;; Calls the core module by the canonical ABI, and answers its imports from
;; cells, so that one foreign call makes a decision and no function of the
;; host's language is ever called from WebAssembly.
;;
;; The desk, a memory of its own, is where the host and the driver exchange
;; strings:
;;        0  the id that was asked about (at most 2,048 bytes)
;;    2,048  the token or the step that was asked about, or an error's text
;;   65,536  what the host passes: its strings, one behind the other
;;
;; A result is one i64, from the low end: 8 bits what came out (documented at
;; each function), 8 bits the question that was asked (0 for none), 16 bits the
;; length of the id, 16 bits the length of the second string. It is negative:
;; where none was written over a call's arguments, these are not.
(module
  (import "core" "memory" (memory $core 0))
  (import "core" "cabi_realloc"
    (func $realloc (param i32 i32 i32 i32) (result i32)))
  (import "core" "babelqueue:guard/guard@0.1.0#decide"
    (func $core_decide (param i32 i32) (result i32)))
  (import "core" "cabi_post_babelqueue:guard/guard@0.1.0#decide"
    (func $post_decide (param i32)))
  (import "core" "babelqueue:guard/guard@0.1.0#decide-id"
    (func $core_decide_id (param i32 i32) (result i32)))
  (import "core" "cabi_post_babelqueue:guard/guard@0.1.0#decide-id"
    (func $post_decide_id (param i32)))
  (import "core" "babelqueue:guard/guard@0.1.0#settle"
    (func $core_settle (param i32 i32 i32 i32 i32 i64 i32) (result i32)))
  (import "core" "cabi_post_babelqueue:guard/guard@0.1.0#settle"
    (func $post_settle (param i32)))
  (import "core" "babelqueue:guard/guard@0.1.0#renew"
    (func $core_renew (param i32 i32 i32 i32 i32 i64) (result i32)))
  (import "core" "cabi_post_babelqueue:guard/guard@0.1.0#renew"
    (func $post_renew (param i32)))
  (import "core" "babelqueue:guard/guard@0.1.0#forget"
    (func $core_forget (param i32 i32) (result i32)))
  (import "core" "cabi_post_babelqueue:guard/guard@0.1.0#forget"
    (func $post_forget (param i32)))
  (import "core" "babelqueue:guard/steps@0.1.0#once"
    (func $core_once (param i32 i32 i32 i32 i32 i64 i32 i32) (result i32)))
  (import "core" "cabi_post_babelqueue:guard/steps@0.1.0#once"
    (func $post_once (param i32)))

  (import "shim" "driver" (table $driver 8 funcref))

  (memory $desk (export "desk") 5)

  ;; The answer to the one question of a call: a bool, a hold or the case of a
  ;; claim's outcome; with that outcome's number and its token on the desk.
  (global $answer (mut i32) (i32.const 0))
  (global $number (mut i64) (i64.const 0))
  (global $token_at (mut i32) (i32.const 0))
  (global $token_len (mut i32) (i32.const 0))

  ;; The question, and the lengths of its strings.
  (global $asked (mut i32) (i32.const 0))
  (global $id_len (mut i32) (i32.const 0))
  (global $second_len (mut i32) (i32.const 0))

  ;; ---- the imports of the core ------------------------------------------------

  (elem (table $driver) (i32.const 0) func
    $seen $remember $forgotten $claim $renewed $complete $release $set_once)

  (func $seen (param $id i32) (param $len i32) (param $ret i32)
    (call $note (i32.const 1) (local.get $id) (local.get $len))
    (call $answer_small (local.get $ret)))
  (func $remember (param $id i32) (param $len i32) (param $ret i32)
    (call $note (i32.const 2) (local.get $id) (local.get $len))
    (i32.store8 $core (local.get $ret) (i32.const 0)))
  (func $forgotten (param $id i32) (param $len i32) (param $ret i32)
    (call $note (i32.const 3) (local.get $id) (local.get $len))
    (i32.store8 $core (local.get $ret) (i32.const 0)))
  (func $claim (param $id i32) (param $len i32) (param $ret i32)
    (call $note (i32.const 4) (local.get $id) (local.get $len))
    (i32.store8 $core (local.get $ret) (i32.const 0))
    (i32.store8 $core offset=8 (local.get $ret) (global.get $answer))
    (if (i32.eqz (global.get $answer))
      (then ;; won: the token, then the length
        (i32.store $core offset=16 (local.get $ret)
          (call $lower (global.get $token_at) (global.get $token_len)))
        (i32.store $core offset=20 (local.get $ret) (global.get $token_len))
        (i64.store $core offset=24 (local.get $ret) (global.get $number)))
      (else ;; busy: what is left of it; done has nothing there
        (i64.store $core offset=16 (local.get $ret) (global.get $number)))))
  (func $renewed (param i32 i32 i32 i32 i32)
    (call $note (i32.const 5) (local.get 0) (local.get 1))
    (call $note_second (local.get 2) (local.get 3))
    (call $answer_small (local.get 4)))
  (func $complete (param i32 i32 i32 i32 i32)
    (call $note (i32.const 6) (local.get 0) (local.get 1))
    (call $note_second (local.get 2) (local.get 3))
    (call $answer_small (local.get 4)))
  (func $release (param i32 i32 i32 i32 i32)
    (call $note (i32.const 7) (local.get 0) (local.get 1))
    (call $note_second (local.get 2) (local.get 3))
    (call $answer_small (local.get 4)))
  (func $set_once (param i32 i32 i32 i32 i32)
    (call $note (i32.const 8) (local.get 0) (local.get 1))
    (call $note_second (local.get 2) (local.get 3))
    (call $answer_small (local.get 4)))

  (func $answer_small (param $ret i32)
    (i32.store8 $core (local.get $ret) (i32.const 0))
    (i32.store8 $core offset=4 (local.get $ret) (global.get $answer)))

  ;; A second question in one call would break the contract of the interface.
  (func $note (param $question i32) (param $id i32) (param $len i32)
    (if (i32.or (global.get $asked) (i32.gt_u (local.get $len) (i32.const 2048)))
      (then (unreachable)))
    (global.set $asked (local.get $question))
    (global.set $id_len (local.get $len))
    (memory.copy $desk $core (i32.const 0) (local.get $id) (local.get $len)))

  (func $note_second (param $at i32) (param $len i32)
    (if (i32.gt_u (local.get $len) (i32.const 63488)) (then (unreachable)))
    (global.set $second_len (local.get $len))
    (memory.copy $desk $core (i32.const 2048) (local.get $at) (local.get $len)))

  ;; ---- strings into the core, results out of it -------------------------------

  ;; The callee frees what it is passed, so each string gets memory of its own.
  (func $lower (param $at i32) (param $len i32) (result i32)
    (local $to i32)
    (local.set $to
      (call $realloc (i32.const 0) (i32.const 0) (i32.const 1) (local.get $len)))
    (memory.copy $core $desk (local.get $to) (local.get $at) (local.get $len))
    (local.get $to))

  (func $begin
    (global.set $asked (i32.const 0))
    (global.set $id_len (i32.const 0))
    (global.set $second_len (i32.const 0)))

  (func $pack (param $out i32) (result i64)
    (i64.or (i64.const 0x8000_0000_0000_0000)
      (i64.or
        (i64.extend_i32_u
          (i32.or (i32.or (local.get $out) (i32.shl (global.get $asked) (i32.const 8)))
            (i32.shl (global.get $id_len) (i32.const 16))))
        (i64.shl (i64.extend_i32_u (global.get $second_len)) (i64.const 32)))))

  ;; Of a `result<decision, store-error>`: 0 to 2 open, with the reason; 3 run
  ;; on a `seen` ticket; 4 run on a `leased` one; 5 skip; 6 park.
  (func $decision (param $ret i32) (result i64)
    (local $case i32)
    ;; No answer here is an error, so none can come back.
    (if (i32.load8_u $core (local.get $ret)) (then (unreachable)))
    (local.set $case (i32.load8_u $core offset=8 (local.get $ret)))
    (if (local.get $case)
      (then (return (call $pack (i32.add (local.get $case) (i32.const 4))))))
    (local.set $case (i32.load8_u $core offset=16 (local.get $ret)))
    (if (local.get $case)
      (then (return (call $pack (i32.add (local.get $case) (i32.const 2))))))
    (call $pack (i32.load8_u $core offset=24 (local.get $ret))))

  ;; Of the other results: the value; or 64 for `unavailable` and 65 for
  ;; `rejected`, with the text as the second string.
  (func $outcome (param $ret i32) (result i64)
    (if (i32.load8_u $core (local.get $ret))
      (then
        (call $note_second
          (i32.load $core offset=8 (local.get $ret))
          (i32.load $core offset=12 (local.get $ret)))
        (return (call $pack
          (i32.add (i32.const 64) (i32.load8_u $core offset=4 (local.get $ret)))))))
    (call $pack (i32.load8_u $core offset=4 (local.get $ret))))

  ;; ---- what the host calls ----------------------------------------------------

  ;; The body's length and the supposed answer.
  (func (export "decide") (param $len i32) (param $suppose i32) (result i64)
    (local $ret i32) (local $out i64)
    (call $begin)
    (global.set $answer (local.get $suppose))
    (global.set $number (i64.const 0))
    (global.set $token_len (i32.const 0))
    (local.set $ret
      (call $core_decide (call $lower (i32.const 65536) (local.get $len)) (local.get $len)))
    (local.set $out (call $decision (local.get $ret)))
    (call $post_decide (local.get $ret))
    (local.get $out))

  ;; The id's length, the answer, its number, the length of its token.
  (func (export "decide-id")
    (param $len i32) (param $said i32) (param $count i64) (param $token i32) (result i64)
    (local $ret i32) (local $out i64)
    (call $begin)
    (global.set $answer (local.get $said))
    (global.set $number (local.get $count))
    (global.set $token_at (i32.add (i32.const 65536) (local.get $len)))
    (global.set $token_len (local.get $token))
    (local.set $ret
      (call $core_decide_id (call $lower (i32.const 65536) (local.get $len)) (local.get $len)))
    (local.set $out (call $decision (local.get $ret)))
    (call $post_decide_id (local.get $ret))
    (local.get $out))

  ;; A ticket is its case, its reason, the lengths of its id and its token, and
  ;; the lease's length.

  ;; Lowers a ticket. The five values are those that its flat form has.
  (func $ticket (param $case i32) (param $reason i32) (param $id i32) (param $token i32)
    (param $length i64) (result i32 i32 i32 i32 i32 i64)
    (local $id_at i32)
    (local.get $case)
    (if (result i32 i32 i32 i32 i64) (i32.eqz (local.get $case))
      (then
        (local.get $reason) (i32.const 0) (i32.const 0) (i32.const 0) (i64.const 0))
      (else
        (call $lower (i32.const 65536) (local.get $id))
        (local.get $id)
        (if (result i32 i32 i64) (i32.eq (local.get $case) (i32.const 2))
          (then
            (call $lower (i32.add (i32.const 65536) (local.get $id)) (local.get $token))
            (local.get $token)
            (local.get $length))
          (else (i32.const 0) (i32.const 0) (i64.const 0))))))

  ;; What comes out: the case of `settled`.
  (func (export "settle")
    (param $said i32) (param $case i32) (param $reason i32) (param $id i32)
    (param $token i32) (param $length i64) (param $outcome i32) (result i64)
    (local $ret i32) (local $out i64)
    (call $begin)
    (global.set $answer (local.get $said))
    (call $ticket (local.get $case) (local.get $reason) (local.get $id)
      (local.get $token) (local.get $length))
    (local.set $ret (call $core_settle (local.get $outcome)))
    (local.set $out (call $outcome (local.get $ret)))
    (call $post_settle (local.get $ret))
    (local.get $out))

  ;; What comes out: the case of `hold`.
  (func (export "renew")
    (param $said i32) (param $case i32) (param $reason i32) (param $id i32)
    (param $token i32) (param $length i64) (result i64)
    (local $ret i32) (local $out i64)
    (call $begin)
    (global.set $answer (local.get $said))
    (local.set $ret
      (call $core_renew
        (call $ticket (local.get $case) (local.get $reason) (local.get $id)
          (local.get $token) (local.get $length))))
    (local.set $out (call $outcome (local.get $ret)))
    (call $post_renew (local.get $ret))
    (local.get $out))

  ;; What comes out: a bool. The step lies behind the ticket's strings.
  (func (export "once")
    (param $said i32) (param $case i32) (param $reason i32) (param $id i32)
    (param $token i32) (param $length i64) (param $step i32) (result i64)
    (local $ret i32) (local $out i64)
    (call $begin)
    (global.set $answer (local.get $said))
    (call $ticket (local.get $case) (local.get $reason) (local.get $id)
      (local.get $token) (local.get $length))
    (local.set $ret
      (call $core_once
        (call $lower
          (i32.add (i32.const 65536) (i32.add (local.get $id) (local.get $token)))
          (local.get $step))
        (local.get $step)))
    (local.set $out (call $outcome (local.get $ret)))
    (call $post_once (local.get $ret))
    (local.get $out))

  ;; Nothing comes out but an error, or 0.
  (func (export "forget") (param $id i32) (result i64)
    (local $ret i32) (local $out i64)
    (call $begin)
    (local.set $ret
      (call $core_forget (call $lower (i32.const 65536) (local.get $id)) (local.get $id)))
    (local.set $out
      (if (result i64) (i32.load8_u $core (local.get $ret))
        (then (call $outcome (local.get $ret)))
        (else (call $pack (i32.const 0)))))
    (call $post_forget (local.get $ret))
    (local.get $out)))
