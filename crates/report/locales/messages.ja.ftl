# 記録に書かれる文の日本語。英語は、同じキーとともに各規則のソースにあります（message! マクロ）。
# 値は英語の { 名前 } と同じ名前の引数です。

## 期間

age-days = { $days } 日
age-hours = { $hours } 時間
age-less-than-a-minute = 1 分未満
age-minutes = { $minutes } 分
age-one-minute = 1 分

## ラボの装置

bench-and = { $first }、{ $further }
bench-held-up = 停滞により { $held_up } フレームを廃棄
bench-late = { $sent } フレーム中 { $late } フレームの送出が 100 us を超えて遅延（最大 { $latest }）
bench-lost = 設定した制限によらない損失が { $frames } フレーム
bench-no-room-ahead = ポートに空きがなく { $ahead } フレームを損失
bench-no-room-behind = テスターのポートに空きがなく { $behind } フレームを損失
bench-not-asked = { $error }。この結果は信頼できません。
bench-path = 経路の処理が追いつきませんでした（{ $problems }）。この結果は信頼できません。マシンの負荷を減らしてください。
bench-reference = 基準装置が設定した制限を守れませんでした（{ $problems }）。この結果は信頼できません。マシンの負荷を減らしてください。

## バースト

burst-at-tester-limit = テスターは、装置が運ぶ { $rate } フレーム/s より大幅に速くは送信できないため、どのバーストもバッファを満たしません。
burst-line-rate = スループット { $rate } フレーム/s は最大フレームレートであり、どのバーストもバッファを満たしません。
burst-no-loss = 最高レートの { $rate } フレーム/s まで、フレームの損失はありませんでした。
burst-no-throughput = スループットがないため、バッファを計算できません。
burst-not-firm = これより高いレートではテスターが予定したフレームを送りきれず、スループット { $rate } フレーム/s は確定していないため、バッファを計算できません。

## 注意事項

caveat-above-declared-speed = { $line } の回線が運べる量を超えて届きました。インターフェースの申告された速度が誤っています。エージェントに --link-speed IF=RATE で実際の速度を指定してください。
caveat-above-limit = 測定区間内に、回線がその時間に運べる量より多く届きました。区間の前から再送などのために滞っていたデータが、区間内に届いたためです。測定時間を長くしてください（--time）。
caveat-above-limit-of-volume = その時間に回線が運べる量より多く届きました。経路がそれまで空いていたため、レートを制限する機構が最初にバーストを通した可能性があります。送信量を増やしてください（--bytes）。
caveat-addresses-aged = { $count } アドレスの学習と確認には、装置がアドレスを忘れるまでの { $time } より長くかかります。一部が期限切れになった可能性があります。--learn-rate を上げるか、アドレスを減らしてください（--most）。
caveat-addresses-lost = 学習済みアドレスへの { $count } フレームのうち { $lost } が失われ、そのアドレスは保持数に含めていません。--learn-rate を下げてください。
caveat-addresses-not-shown = テスターが装置に示したのは { $count } アドレスのうち { $shown } だけです。示されなかったものは学習できません。--learn-rate を下げてください。
caveat-all-addresses-kept = { $learned } アドレスすべてが保持されました。テーブルはさらに大きい可能性があります。数を増やしてください（--most）。
caveat-all-hosts-held = { $held } ホストすべてが保持されました。ルーターはさらに保持できる可能性があり、超えたときの動作は観測していません。数を増やし（--most）、必要ならより広いネットワークを使ってください。
caveat-below-rate = ホスト { $host } の送信は指定レートの { $share } でした。経路または送信側がそれ以上を受け付けません。一定の負荷で測定するには、レートを下げてください。
caveat-bench-limits = { $all } 回の試行のうち { $missed } 回で記録: { $first }
caveat-both-loads-lower = { $offered }。2 つの負荷は、いずれも実際に達した値です。
caveat-bursts-below-line = バーストのレートは { $rate } フレーム/s で、テスターの上限です（回線は { $line }）。バッファ時間はこのレートで計算しています。
caveat-bursts-held-up = バースト中にテスターが繰り返し停滞し、最大で時間の { $share } に及びました。長さは下限値です。送信に使うコアでほかの処理を動かさずに、測定し直してください。
caveat-bursts-line-unknown = バーストのレートは { $rate } フレーム/s で、テスターの上限です（回線の値は不明）。バッファ時間はこのレートで計算しています。
caveat-bursts-not-tried = バーストは試していません。{ $why }
caveat-bursts-too-slow = バーストのレートは { $rate } フレーム/s で、スループット { $throughput } を超えないため、その長さからバッファを計算できません。
caveat-bursts-unlimited = { $longest } 続くバーストがすべて戻り、それより長いものは試していません。バッファはさらに大きい可能性があります。
caveat-cache-advice = { $path } に書き込めないため（{ $error }）、キャッシュの破棄の代わりにファイルごとの助言（posix_fadvise）を使いました。名前と i ノードはキャッシュに残ります。root で実行してください。
caveat-cache-not-dropped = { $path } に書き込めないため（{ $error }）、キャッシュを破棄していません。root で実行してください。
caveat-cpu-stolen = ハイパーバイザーが { $host } の CPU 時間の { $share } を使いました。数値はこのホストの能力より低くなっています。マシンが空いているときに測定し直してください。
caveat-device-cpu-unknown = 結果に使う試行での装置の CPU 使用率は不明です。多くの装置はこの値を 5 秒ごとにしか更新しません。--time 10s 以上を指定してください。
caveat-device-note = 装置自身の負荷: { $note }
caveat-device-queued = テスターが毎秒 { $sent } フレームを送る間、到着は毎秒 { $forwarded } フレームでした。差は装置のキューに溜まり、{ $time } の試行ではあふれませんでした。持続できるレートは { $forwarded } に近く、長い試行で分かります（--time 60s）。
caveat-discarded = 受信側はデータをコピーせずカーネルに破棄させました。データを使うプログラムのレートはこれより低くなります。
caveat-echo-not-calibrated = テスターのポートが送受信できるフレーム数は不明です。2 つのポートの間で `linerate device calibrate --sizes { $bytes }` を実行すると測定できます。
caveat-ended-early = 実行は途中で終了しました: { $error }
caveat-few-packets = { $window } の測定区間に { $host } へ届いたパケットは { $count } 個で、{ $fewest } 個に足りません。測定区間の端での 1 個が値を左右し、速度は { $low } から { $high } の間です。もっと長く測ってください（--time { $enough }s）。
caveat-fragments = { $size } バイトのデータグラムは 1 個ごとに { $count } 個の断片で送られました。断片が 1 個失われるとデータグラム全体が失われます。{ $fits } バイト以下（--size）なら 1 個のパケットに収まります。
caveat-few-round-trips = 測定区間 { $window } には { $time } の{ $named }が順に { $count } 回しか入らず、{ $fewest_round_trips } 回に足りません。1 回の損失や区間の端での送信中データが数値に影響します。測定時間を長くしてください（--time { $enough }s）。
caveat-few-round-trips-of-volume = { $volume } の転送は { $window } で終わり、{ $time } の往復が順に { $count } 回しか入らず、{ $fewest_round_trips } 回に足りません。1 回の損失や TCP のスロースタートが数値に影響します。送信量を増やしてください（--bytes）。
caveat-few-searches = 探索の回数は { $searches } 回です。RFC 2544 26.4 節は { $standard_repeats } 回を求めています。ほかの値と比べるには --repeats { $standard_repeats } を指定してください。
caveat-flooding-not-seen = 保持数を超えたときにフレームがフラッディングされるかどうかは観測していません。ルーターに 3 つ目のポートが必要です。
caveat-flow-ended = 測定区間が終わる前にフローが終了し、その後に送るはずだった分は未送信として数えています。{ $why }
caveat-frames-below-rate = 予定の { $due } フレームのうち { $sent } を毎秒 { $per_s } で送信しました。このホストが停滞したか、送信能力が足りないため、指定に届いていません。レートを下げるか、空いているときに測定してください。
caveat-goal-short = 目標 { $goal }: 試行の時間は { $whole_time } と合計 { $whole_sum } のところ、{ $time } と負荷ごとの合計 { $sum } でした。ほかの値と比べるには --time { $seconds }s を指定してください。
caveat-hosts-lost-to-end = 過負荷の後、保持していたホストの損失が試行の終わりまで続きました。--time を長くしてください。
caveat-hosts-late-or-no-room = { $hosts } ホストの試験中にテスターが停滞したか、全フレームを受信する余地がなかったため、結果は下限値です。--rate を下げるか、このホストが空いているときに測定してください。
caveat-hosts-not-asked = テスターが停滞し、{ $hosts } ホストのうち { $unasked } に要求を送れなかったため、結果は下限値です。--rate を下げるか、このホストが空いているときに測定してください。
caveat-idle-slower = 無負荷の経路は負荷時より応答が遅くなりました。要求の合間に休止したコアの復帰に時間がかかり、無負荷時の遅延に含まれます。負荷時の遅延を比べるか、コアを休止させないでください。
caveat-idle-wakeup = 要求の合間にコアが休止したため、どの遅延にも復帰の時間が含まれます。同じ条件の測定とだけ比べるか、--busy-poll を付けて測定してください。
caveat-iperf3-congestion = iperf3 サーバーには `{ $asked }` がないため、輻輳制御 { $used } で送信しました。サーバーでモジュールを読み込んでください（modprobe tcp_{ $asked }）。
caveat-iperf3-warm-up-loss = この版の iperf3 はウォームアップ中に失われたデータグラムを区別しないため、損失は両方の合計です。ウォームアップなしで測定するか、相手側で iperf3 3.13 以降を使ってください。
caveat-is-tester-limit = これは装置なしで測定したテスターの限界です。装置を通した結果がこれを超えることはありません。
caveat-large-packets-lost = この経路では大きなパケットが通知なく失われます。エージェントへの接続は、セグメントを { $limit } バイトに制限するまで停止したため、TCP の試行も同じ値に制限しました。`tracepath` で箇所を調べるか、そこの MTU を下げてください。UDP は `--size { $limit }` で通ります
caveat-latency-no-rate = 装置が運べるレートが不明なため、遅延は測定していません。
caveat-latency-nothing-arrived = 遅延は測れていません。送った { $sent } フレームが一つも届きませんでした。配線、VLAN、アドレスを確かめるか、--rate を下げてください。
caveat-latency-lower-load = { $offered }。遅延はこの低い負荷での値です。--rate を下げてください。
caveat-latency-several-clocks = 時計の異なるホストのポートを使ったため、遅延は測定していません。1 台のホストのポートを指定してください。
caveat-learning-not-measured = 装置の学習速度は測定していません。装置が忘れたアドレスが必要です。エージング時間を指定すると（--ageing）、試行のたびにその時間を待ちます。
caveat-left-behind = 残っているもの: { $what }
caveat-left-behind-on-host = { $host } に残っているもの: { $text }
caveat-links-left-out = ツリーのシンボリックリンク { $skipped } 件はコピーせず、どの数値にも含めていません。--links copy を指定するとコピーし、コピー先で作れないものの名前を示します。
caveat-loopback-calibration = テスターの限界は各ホストのループバックによる上限の見積もりで、インターフェースを通していません。ホスト同士をケーブルでつなぎ、`linerate calibrate` で測定してください。
caveat-more-frames-arrived = { $trial }: 届いたフレーム（{ $received }）が送信数（{ $sent }）を上回りました。装置では起こりえません。ループやほかのテスターを確認してください。
caveat-no-burst-came-back = 連続する 2 フレームさえ戻りませんでした。
caveat-no-host-reached = 損失なしに届いたホストは 1 つもありません。ルーターに 2 番目のポートのネットワークがあるか確認し、--rate を下げてください。
caveat-no-room-in-socket = ポート { $port }: { $missed } フレームは受信ソケットに空きがなく、数えられていません。限界は装置ではなくこのホストです。XDP を使うか、レートを下げてください。
caveat-not-calibrated = このサイズでのテスターの限界は不明です。ポートをケーブルでつなぎ、同じポートとサイズで `linerate device calibrate` を実行してから測定し直してください。
caveat-not-converged = { $runs } 回の測定後も平均の幅は ±{ $width } で、指定した狭さに達していません。1 回の測定を長くしてください（--time）。
caveat-not-measured = { $trial } は測定していません: { $why }
caveat-not-put-to-test = 判定を次の試験で検証していません。{ $name }: { $why }
caveat-not-recovered = { $runs } 回のうち { $unrecovered } 回は、フレームの損失が終わりまで続きました。--time を長くしてください。
caveat-not-steady = ホスト { $host } の{ $did }は、測定区間の後半に前半より { $share } { $more }ました。負荷が一定でなく、数値は測定した時期によって変わります。ウォームアップ（--warmup）または測定時間（--time）を長くしてください。
caveat-not-steady-at-first = ホスト { $host } の{ $did }は、測定区間の前半にはまったくありませんでした。負荷が一定でなく、数値は測定した時期によって変わります。ウォームアップ（--warmup）または測定時間（--time）を長くしてください。
caveat-of-raw-frames = 生フレーム: { $caveat }
caveat-off-window = ホスト { $host } の{ $did }は { $asked } s ではなく { $seconds } s 続きました。区間の端でスレッドがコアを待ったか、相手のホストが先に開始したためです。レートはこの時間での値です。測定時間を長くしてください（--time）。
caveat-offload-not-on-wire = インターフェース { $interface }（{ $driver }）は結合したセグメントをパケットに分けずに渡します。レートは回線上のパケットではなくメモリの値です。ラボのリンクにレートを設定するか（--link）、--no-offload で測定してください。
caveat-old-calibration = テスターの限界はこの測定の { $age }前のものです。ホストの状態は変わるため、`linerate calibrate` で測定し直してください。
caveat-on-host = { $host }: { $caveat }
caveat-one-run = 測定は 1 回だけで、ばらつきがわかりません。3 回以上測定してください。
caveat-one-sided = { $server } ではエージェントが動いていません。その側の値は、相手自身が自分の測定区間について報告したものです。ホストも観測していないため、判定は片側だけに基づきます。両側を見るには、そこで `linerate serve` を実行してください。
caveat-other-traffic = 測定区間中、受信インターフェースにほかのトラフィックが流れ、経路の容量を共有しました。空いているときに測定してください。
caveat-overload-lost-nothing = 過負荷でもフレームの損失がなく、回復するものがありませんでした。--time を長くしてください。
caveat-outage = 測定区間の { $start } s から { $length } s の間、経路は何も運びませんでした。数値はこの時間を含みます。そのときに切断または切り替えがなかったか調べてください。
caveat-outage-both = 測定区間の { $start } s から { $length } s の間、どちらの方向にも何も届きませんでした。数値はこの時間を含みます。そのときに切断または切り替えがなかったか調べてください。
caveat-outage-towards = 測定区間の { $start } s から { $length } s の間、{ $host } に何も届きませんでした。数値はこの時間を含みます。そのときに切断または切り替えがなかったか調べてください。
caveat-packet-sockets = XDP の代わりにパケットソケットを使いました（{ $error }）。毎秒送受信できるフレームははるかに少なくなります。装置を疑う前に、ポート同士を直結した試行と比べてください。
caveat-packet-sockets-one-machine = XDP の代わりにパケットソケットを使いました。両方の送信ホストが同じマシンにあり、2 つの XDP 送信が互いのコアを奪うためです。毎秒送受信できるフレームははるかに少なくなります。片方向で送るか、2 台のマシンから送ってください。
caveat-place-unsure = 複数のデータグラムをまとめたパケット（オフロード）、またはデータグラムのフラグメントをホストが廃棄したため、損失の場所の内訳は推定です。正確に知るには --no-offload を付け、MTU に収まるデータグラムで測定してください。
caveat-port-counters-only = ポート { $port } へのフレームには署名がなく、わかるのはポートのカウンタの増分だけです。ほかのトラフィックも含まれます。重複、順序、フラッディング、遅延は不明です。
caveat-probe-share = 経路の遅延を測る要求が、各方向の回線上で { $probes }（ストリームの { $percent } %）を占めたため、ストリームの値はその分低くなっています。スループットだけを知るには --loaded-latency なしで測ってください。
caveat-probes-not-sent = 経路の遅延を測る { $due } 要求のうち { $unsent } は予定の時刻に送れず、応答なしと数えています。要求側のホストが停滞しました。空いているときに測定してください。
caveat-raw-frames-untimed = 生フレーム: 往復の時間は不明です。{ $why }
caveat-recovery-not-measured = 回復は測定していません。{ $why }
caveat-recovery-out-of-order = フレームの到着順が入れ替わりました。最後に失われたように見えるものが後で届いた可能性があり、時間は長すぎるかもしれません。
caveat-repeated = テスターが停滞したため、{ $trials } 回の試行のうち { $repeated } 回を繰り返しました。静かなマシンで測定すると早く終わります。
caveat-requests-not-sent = 予定の { $due } 要求のうち { $unsent } は送信されませんでした。{ $host } または経路がこのレートに対応できず、遅延は残りの要求だけの値です。--rate を下げてください。
caveat-resumed = 測定は { $trials } 回の試行の後に再開しました。その間にネットワークが変わった可能性があります。
caveat-shared-machine = 両端が 1 台のマシンで動き、コアを共有しました。2 台ならさらに高い値に達する可能性があります。ホスト全体の CPU 使用率は両端の合計です。
caveat-shared-machine-copy = コピー元とコピー先が同じマシンで、コア、ストレージ、キャッシュを共有しました。1 台の能力を知るには、2 台の間でコピーしてください。
caveat-short-trial = 結果を決めた試行は { $time } でした。RFC 2544 24 節は 60 s を求めています。ほかの値と比べるには --time 60s を指定してください。
caveat-smaller-segments = { $host } から送られた TCP セグメントは最大 { $segment } バイトで、指定（--mss）の { $asked } バイトより小さくなりました。インターフェースか経路の MTU がそれより大きいセグメントを通しません。
caveat-tester-cpu-stolen = { $trial } で、ハイパーバイザーがテスターの CPU 時間の { $share } を使いました。マシンが空いているときに測定し直してください。
caveat-tester-held-up = { $trial }: テスターが与えた負荷は予定のレートの { $share } で、停滞は合計 { $time } です。送信に使うコアでほかの処理が動いていました。
caveat-tester-limit = 結果はテスターの限界に達しています。装置の能力はこのテスターで示せる値より高い可能性があります。より速いホストを使ってください。
caveat-two-runs = 測定は 2 回だけで、ばらつきがわかりません。3 回以上測定してください。
caveat-unknown-link-speed = この経路のリンク速度がわからず、リンクに対する割合を示せません。エージェントに --link-speed IF=RATE を指定してください。
caveat-volume-not-sent = ホスト { $host } は、1 回の最長時間 { $longest } の間に { $volume } のうち { $sent } しか送信できませんでした。数値はそれまでに送信した分の値です。送信量を減らすか（--bytes）、時間で測定してください（--time）。
caveat-wide-spread = 各回の差が中央値の { $spread } あります。回数を増やすか（--repeats、または --confidence 95 --within 2.5%）、測定時間を長くしてください（--time）。
caveat-xdp-generic = ポート { $port }: ドライバーが XDP プログラムに対応していないため（{ $why }）、フレームはカーネルの汎用経路で遅れて数えられます。処理が遅く、遅延にはこのホストの分が多く含まれます。

## 検証での変更点

change-all-flows = { $flows } フロー
change-calls = 同時 { $outstanding } 呼び出し
change-congestion = 輻輳制御 { $other }
change-datagrams = { $minimum_mtu_datagram } バイトのデータグラム
change-even-datagrams = { $rate } の等間隔のデータグラム
change-flows = { $before } でなく { $after } フロー
change-from-memory = メモリからの読み出し
change-half-load = 半分の負荷
change-load = { $rate } の負荷
change-messages = { $larger } バイトのメッセージ
change-neither = メモリからの読み出しと書き込みなし
change-no-limit = 無制限の負荷
change-nothing-written = 書き込みなし
change-one-call = 1 つずつの呼び出し
change-one-request = 1 つずつの要求
change-other-direction = 逆方向のデータ
change-packets = { $half } バイトのパケット
change-receive-buffer = { $mib } MiB の受信バッファ
change-requests = 同時 { $outstanding } 要求
change-segments = { $minimum_mtu_segment } バイトのセグメント
change-system-buffers = システム既定のバッファ

## 記録の比較

compared-agent = ホスト { $host } の linerate
compared-bench = 試験環境
compared-condition = { $what }: 変更前は { $old }、変更後は { $new } です。
compared-congestion = 輻輳制御
compared-driver = { $place }のドライバー
compared-found-after = `{ $name }` は変更後にだけ見つかりました。
compared-found-before = `{ $name }` は変更前にだけ見つかりました。
compared-hosts = ホスト
compared-interface = ホスト { $host } のインターフェース { $interface }
compared-kernel = ホスト { $host } のカーネル
compared-lab = ラボ
compared-lab-with = ラボ（`{ $options }`）
compared-measured-after = `{ $name }` は変更後にだけ測定されました。
compared-measured-before = `{ $name }` は変更前にだけ測定されました。
compared-model-and-cores = { $model }（{ $cores } コア）
compared-mtu = { $place }の MTU
compared-no-lab = ラボなし
compared-not-measured = `{ $name }` は { $record } では測定されていません。
compared-off = オフ
compared-offload = { $place }の { $offload }
compared-on = オン
compared-one-session = 記録は両側 1 つずつです。記録どうしの差の大きさがわからないため、その間に許容差 { $tolerance } を超えるドリフトがあると変化に見えます。それぞれ複数の記録を指定するか、`linerate compare --live` で交互に測定してください。
compared-or = { $first } または { $further }
compared-other-options = `{ $name }` は { $record } では同じ測定ではありません。指定した内容とオプションが異なります。
compared-other-paths = `{ $name }` は { $record } では同じ測定ではありません。経路の数が異なります。
compared-processor = ホスト { $host } のプロセッサ
compared-qdisc = { $place }のキューイング規則
compared-repeats = 測定回数
compared-speed = { $place }の速度
compared-unknown = 不明
compared-until-known = 平均が信頼度 { $confidence } % で { $within } 以内に定まるまで、最大 { $at_most }
compared-until-steady = 安定するまで、最大 { $at_most }
compared-value = { $value }
compared-version = バージョン（linerate）
compared-warm-up = ウォームアップ
compared-window = 測定区間

## 経路でのデータ破損

corruption-failed = 到着したものの { $share } が受信ホストでチェックサムエラーになりました。
corruption-next = 経路上のケーブル、光モジュール、メモリの不良を確認してください。パケットを書き換えてチェックサムを計算し直す装置を除き、転送する各インターフェースが CRC エラーを数えています。

## プロセッサ

cpu-both-wait = 両端が 1 台のマシンにあり、両方のスレッドがコアを待ちました（時間の { $sender } と { $receiver }）。
cpu-busy = { $does }スレッドは時間の { $busy } をコアで実行していました。
cpu-busy-and-waited = { $does }スレッドは時間の { $busy } をコアで実行し、{ $waited } をコア待ちで過ごしました。
cpu-lane = 1 本のレーンが全段階を順に処理します。合計で時間の { $share } をコアの使用またはコア待ちに費やしました。
cpu-queue-lets-go = ただし、そのうち少なくとも { $share } は、キューがパケットを送り出すソフト割り込みでした。
cpu-queue-on-path = ただし、送信データは経路のキューに滞留し、往復時間は { $least } から { $loaded } に伸び、受信側のウィンドウには余裕がありました。
cpu-quota = { $does }ホストの CPU 割り当て（{ $cores } コア分）は、周期の { $share } で使い切られました。
cpu-quota-of-copy = { $whose }の CPU 割り当て（{ $cores } コア分）は、周期の { $share } で使い切られました。
cpu-soft-interrupts-filled = その間、ホストのコア 1 つがソフト割り込みで埋まっていました。
cpu-soft-interrupts-of-that = そのうち最大 { $most } はソフト割り込みだった可能性があります。
cpu-stage = { $whose }の段階のうち CPU を最も使ったのは「{ $stage }」で、時間の { $busy } をコアで実行し、{ $waited } をコア待ちで過ごしました。
cpu-unseen = { $does }ホストではエージェントが動いていないため、プロセッサを観測していません。
cpu-polls = { $does }スレッドは常にポーリングしていました（--busy-poll）。コア上にあったことは、処理すべき仕事があったことを意味しません。

## 装置

device-loopback-reached-more = インターフェースも装置も通さない自分自身との測定では、両ホストともこれを上回りました。この結果は遅い方の { $share } です。
device-next = より速い装置にするか、装置の処理を減らすと、さらに多く運べます。
device-reached-more = 装置を迂回すると、同じホストの値はさらに高くなりました。この結果はその { $share } です。
device-reached-no-more = 装置を迂回しても、同じホストの値は高くなりませんでした。

## フレーム

frames-all-arrived = 送信した { $count } フレームがすべて届きました。限界を調べるには負荷を上げてください。
frames-no-stream = ストリームが送信されませんでした。
frames-no-room = 送信した { $sent } フレームのうち { $lost } が数えられていません。テスターの受信ソケットに全フレームを受け取る余地がありませんでした。
frames-not-arrived = 送信した { $sent } フレームのうち { $lost } が届きませんでした（受信ポートで失われたものがない場合）。
host-bus-card = カードは { $card } を使えます。
host-bus-next = カードをより速いスロットに挿してください。バスごとの上限は `linerate limits --bus` で分かります。
host-bus-slot = { $host } のインターフェース { $interface } のカードは { $bus } にあり、リンクより少ない量しか運べません。
host-bus-used = 平均 { $frame_bytes } バイトのフレームが、このバスで運べる最大の { $used } を使いました。
hosts-none-reached = 損失なしに届いたホストは 1 つもありません。

## 測定の途中でわかっていること

known-between = { $lower } ～ { $upper }
known-burst = バースト { $number }/{ $all }、{ $lower } ～ { $upper } フレーム
known-done = 完了
known-echo = エコー { $bounds }
known-finding = 確認中
known-holds = 保持数 { $held } ～ { $upper }、{ $hosts } を試行中
known-keeps = 保持数 { $lower } ～ { $upper }、{ $doing }
known-latency = { $load } での遅延
known-learning = 学習中
known-learns = 学習レート { $lower } ～ { $upper }、{ $rate } で{ $doing }
known-loss = { $rate } フレーム/s で損失 { $share }
known-of-size = { $size }、{ $known }
known-past = 保持数 { $held }、{ $hosts } での動作を確認中
known-recovery = 回復 { $number }/{ $all }、{ $rate } から
known-size = サイズ { $number }/{ $all }: { $bytes } バイト
known-throughput = スループット { $bounds }

## ラダー

ladder-copy-incomplete = コピーが終わりまで進みませんでした
ladder-copy-unsized = コピーの大きさは TCP が運ぶ量から決まりますが、TCP は測定されていません
ladder-frames-held-up = すべての試行で、フレームを送信する側が停滞しました。マシンが空いているときに測定してください
ladder-next-bbr = 損失で減速しにくい --congestion bbr も試してください。
ladder-next-copy = `linerate copy --from memory --to discard` は両端のストレージを除外します。コアを増やすには --lanes 4 を試してください。
ladder-next-copy-destination = コピー先のストレージが経路より遅くなっています。`linerate copy --to discard` はストレージを除外し、--sync none は永続化を待ちません。
ladder-next-copy-source = コピー元のストレージが経路より遅くなっています。`linerate copy --from memory` はストレージを除外します。
ladder-next-frames = ここではソケットを通りません。経路上の装置は `linerate device throughput` で、テスターのポートは `linerate device calibrate` で測定してください。
ladder-next-loss = TCP（{ $congestion }）はセグメントの { $share } を再送しました。`linerate stream --udp --rate` で、経路がパケットを失う場所を調べてください。
ladder-next-nfs = 転送ごとに応答を待っています。`linerate nfs { $options } --outstanding 32` で、大きな転送や同時転送の増加が補うかどうかを確認できます。
ladder-next-nfs-busy = { $end }スレッドは時間の { $busy } を処理中でした。大きな転送（`linerate nfs { $options }`）または --flows 4 を試してください。
ladder-next-receiver-queue = データグラムが受信側の NIC またはカーネルのキューで失われています。複数のコアに分散するか（複数の受信キューで --flows 4）、リングと net.core.netdev_max_backlog を大きくしてください。
ladder-next-rpc = 呼び出しごとに応答を待っています。`linerate rpc { $option } --sizes { $larger } --outstanding 64` で、同時呼び出しの増加や大きな呼び出しが補うかどうかを確認できます。
ladder-next-rpc-busy = { $end }スレッドは時間の { $busy } を処理中でした。大きな呼び出し（`linerate rpc { $option } --sizes { $larger }`）または --flows 4 を試してください。
ladder-next-send-buffer = 時間の { $share } は送信バッファにより TCP が停止しました。大きな --send-buffer（および net.ipv4.tcp_wmem）、または --flows 4 を試してください。
ladder-next-socket-buffer = データグラムが受信側のソケットバッファで失われています。--receive-buffer 8M、--flows 4、または受信スレッドに別のコア（--cpus-receiver）を試してください。
ladder-next-tcp = ウィンドウも損失も TCP（{ $congestion }）を抑えていません。コアを増やす --flows 4 と、別の --congestion を試してください。
ladder-next-udp = 送信ソケットがパケットごとの処理に追いついていません。--flows 4、大きな MTU、またはカーネルによるデータグラムの分割（`linerate stream --udp` は可能なら使用）を試してください。
ladder-next-udp-loss = データグラムが途中で失われています。`linerate stream --udp --rate` で損失なく通るレートを調べ、`linerate device throughput` で経路上の装置を測定してください。
ladder-next-window = 時間の { $share } は受信側のウィンドウにより TCP が停止しました。大きな --receive-buffer（および net.ipv4.tcp_rmem）、または --flows 4 を試してください。
ladder-no-echo = 受信ホストがエコー要求に応答しません
ladder-no-link-speed = この経路のリンク速度がわかりません。回線に対する各層の割合を見るには、エージェントに --link-speed IF=RATE を指定してください
ladder-not-reached = 測定する前に実行が終了しました
ladder-nothing-arrived = 受信側に何も届きませんでした

## 遅延

latency-core = その一部はコア待ちの時間です。
latency-elsewhere = その大部分は経路の時間ではありません。
latency-explained = 最短の往復時間とサーバーの時間で説明できるのは、その { $share } です。
latency-lost = その多くは、失われたか再送された要求によるものです。
latency-next = 同時に送る要求を増やすと（--outstanding、--flows）経路を満たせます。--busy-poll は各要求の時間を短くします。
latency-one-request = 1 つずつ送った要求の所要時間は { $time } でした。
latency-several-unknown = キューで待ったのか経路の遅延だけなのかは分かりません。小さな要求を 1 つずつ送って測ってください（--outstanding 1）。
latency-queue = その一部は経路のキューでの時間です。
latency-quota = その間、ホストが CPU 割り当ての上限で停止していました。
latency-requests = 同時に { $several } 件送った要求の所要時間は、それぞれ { $time } でした。

## 保持数

mtu-black-hole-next = { $minimum } バイト以下のパケット（UDP は --size 1232、TCP は --mss 1208）または --prove で測定してください。それで届く場合は、ホストの MTU を設定するか経路で MSS を制限し、大きすぎるパケットを知らせる ICMP を通してください。
mtu-black-hole-small = どの経路も { $minimum } バイトのパケットを運ぶため、大きさは原因ではありません。
mtu-black-hole-vanished = { $bytes } バイトのパケットは 1 つも届きませんでした（送信 { $sent }）。フローを開いた小さなパケットは届いています。
number-all-held = 試した { $held } { $what }のすべてが保持されました。
number-held = { $held } { $what }は保持され、{ $too_many } は保持されませんでした。
number-not-firm = { $held } { $what }が保持されました。テスターは、それより多くの確認に要するものを送りきれませんでした。

## 与えた負荷

offered-all = テスターは予定の { $due } フレームをすべて送信
offered-all-slower = テスターは予定の { $due } フレームを予定の { $share } のレートで送信
offered-load-arrived = 指定した負荷の { $share } が届きました。
offered-load-next = 経路が運べる量を調べるには、--rate を上げるか、指定を外してください。
offered-load-sent = 指定した負荷の { $sent } が送信され、{ $arrived } が届きました。
offered-part = テスターは予定の { $due } フレームのうち { $sent } を送信
offered-part-slower = テスターは予定の { $due } フレームのうち { $sent } を送信（レートの { $share }）

## 通信断

outage-next = そのときに切断または切り替え（リンクの断続、フェイルオーバー、ファイアウォールのルール）がなかったか調べ、測定し直してください。通信断がなければ、結果は測定区間の残りの時間のものになります。
outage-share = 測定区間の { $share } の間、送信があったのに経路は何も運びませんでした。

## 経路での損失

path-loss-allowed = この損失と { $time } の往復時間では、TCP（{ $congestion }）のレートはおよそ { $rate } になります。
path-loss-by-chance = データグラムの { $share } が 2 台のホストの間で失われました。偶然の損失のように 1 つずつ失われています。
path-loss-clustered = データグラムの { $share } が 2 台のホストの間で失われました。キューがあふれたときのように、まとまって失われています。
path-loss-counted = セグメントの { $retransmitted } が再送され、受信ホストは到着分の { $dropped } を破損または廃棄として数えました。
path-loss-datagrams = データグラムの { $share } が 2 台のホストの間で失われました。
path-loss-excess = データグラムの { $share } が 2 台のホストの間で失われました。レートを超過したときの失われ方です。到着は一定のレートを保ち、偶然によるばらつきがありません。
path-loss-full = ただし、到着は輻輳ウィンドウによらず一定のレートを保ちました。経路が満杯でした。
path-loss-next-copy = 経路だけを測定してください。同じホスト間の `linerate stream --prove` で、不良な経路か、満杯の経路かを区別できます。
path-loss-next-datagrams = --rate を半分にして測定してください。損失が残れば経路は負荷によらずパケットを失っており、なくなれば経路が満杯でした。
path-loss-next-reordered = UDP で測定してください（linerate stream --udp、低い --rate）。順序の入れ替わりと損失を別々に数えます。
path-loss-next-requests = 経路の損失を確認してください（linerate stream --udp を低い --rate で実行すると数えられます）。失われた要求は毎回タイムアウトまで待ちます。
path-loss-next-tcp = 同じレートの UDP で判別できます（--prove）。残る損失は経路のもの（エラー、光信号、デュプレックス、無線）、なくなる損失は経路が満杯のためです。
path-loss-next-tcp-bbr = 同じレートの UDP で判別できます（--prove）。残る損失は経路のもの（エラー、光信号、デュプレックス、無線）で、--congestion bbr なら損失があってもレートを保ちます。なくなる損失は経路が満杯のためです。
path-loss-not-by-loss = { $congestion } は損失を輻輳とみなしません。
path-loss-queue = ただし、キューが満杯でした。キューがなければ往復時間は { $time } です。
path-loss-reordered = そのうち { $share } は受信側にすでに届いていました。セグメントの順序が入れ替わり、TCP がそれを損失とみなしました。
path-loss-requests = 要求の { $lost } が失われたか再送され、全要求の時間の { $tail } は中央値より遅い要求に費やされました。
path-loss-retransmitted = セグメントの { $share } が再送されました。
path-loss-stalled = 時間の { $share } は TCP がタイムアウトを待っていました。

## 判定の検証

proof = { $change }では、{ $said }。
proof-against = これはこの要因を否定する結果です
proof-and-cannot-tell = { $said }、その制限要因は判別できませんでした
proof-and-limited = { $said }、その制限要因は{ $limit }でした
proof-as-it-must = これが制限要因であれば、この結果になるはずです
proof-black-hole = 経路が大きなパケットだけを失うこと（パス MTU ブラックホール）
proof-copy = コピーの速度は { $before } でなく { $after } でした
proof-in-pairs = { $said }（{ $pairs }）
proof-inconclusive = これでは結論が出ません
proof-judged = { $change }では、{ $said }。{ $judged }。
proof-lost = { $count } { $what }の { $before } でなく { $after } が失われました
proof-one-pair = 1 組
proof-packet-limit = 制限がビット数でなくパケット数に対するものであること
proof-pairs = { $pairs } 組
proof-ratio = { $pairs }、{ $low } 倍から { $high } 倍
proof-result = 結果は { $before } でなく { $after } でした
proof-rules-out = これにより、{ $contrary }が否定されます
proof-shows = これは、{ $contrary }を示します
proof-transactions = トランザクションは毎秒 { $before } でなく { $after } でした
proof-wide-return = 復路が往路と同じだけ運ぶこと
proof-with-headers = すべてのヘッダーを含むレートは { $before } でなく { $after } でした

## 生フレーム

raw-frames-lost = { $sent } フレームのうち { $lost } が途中または受信ポートで失われました（{ $engine }）。
raw-frames-port = 予定の { $due } フレームのうち { $sent } を送信し、そのうち { $lost } が失われました。送信ポートがそれ以上を送出できませんでした（{ $engine }）。
raw-frames-udp-more = 同じ経路で UDP はこれを上回りました（{ $udp }）。フレームを送信または計数する部分（{ $engine }）の方が遅くなっています。
raw-frames-wire = 受信ポートには、{ $line } の回線が MTU { $mtu } のフルサイズのフレームで運べるペイロードの { $share } が届きました。

## 受信側バッファ

receiver-buffer-little = データグラムの { $share } がソケットバッファに入りませんでした。
receiver-buffer-next = バッファを大きくすると（--receive-buffer、net.core.rmem_max）、バーストで届くデータを収められます。
receiver-buffer-next-reassembly = MTU に収まるデータグラムは再構成が不要です。再構成用のメモリを増やすと（net.ipv4.ipfrag_high_thresh、net.ipv6.ip6frag_high_thresh）、より多くのフラグメントを保持できます。
receiver-buffer-overflowed = データグラムの { $share } がソケットバッファに入りませんでした。バッファは到着データの約 { $time } 分で、受信スレッドは時間の { $occupied } を処理中でした。
receiver-buffer-reassembly = データグラムの { $share } は、受信ホストがフラグメントを拒否したために失われました。再構成用のメモリが残っていませんでした。
receiver-buffer-throttled-sender = ただし、送信側は断続的にしか実行できず、実行できるときにまとめて送信しています。
receiver-buffer-too-slow = スレッドが遅すぎるか、コアを使えずにいます。

## 受信側 CPU

receiver-cpu-dropped = 受信ホストは NIC または入力キューでパケットの { $dropped } を廃棄しました。最も使用率の高いコアは時間の { $busy } を処理中でした。
receiver-cpu-kernel-thread = カーネルの受信スレッド（{ $thread }）は時間の { $busy } をコアで実行し、{ $waited } をコア待ちで過ごしました。
receiver-cpu-next = より速いコア、大きなメッセージ、または受信の複数コアへの分散（--flows、NIC のキュー）で、さらに多く受信できます。
receiver-cpu-next-copy = より速いコア、複数コアでのレーンの増加（--lanes）、または検証の省略（--no-verify）で、さらに多く受信できます。
receiver-cpu-overflowed = その間、データグラムの { $share } がソケットバッファに入りませんでした。
receiver-cpu-took-all = ただし、到着したデータグラムは受信ホストでほとんど失われませんでした。

## 回復

recovery-loads-not-offered = テスターが両方の負荷を与えきれない回がありました。
recovery-no-loss = 過負荷でもフレームの損失はありませんでした。
recovery-no-overload = スループット { $rate } フレーム/s は回線またはテスターの上限で、それ以上の負荷で装置を過負荷にできません。
recovery-no-rate = 装置が運べるレートが不明です。
recovery-overload = 過負荷で { $lost } フレームが失われました。
recovery-throughput-not-firm = 両方の負荷の基準となるスループットが確定していません。

## 送信側バッファ

send-buffer-held-back = 送るデータがある時間の { $share } で、送信バッファが TCP を抑えていました。
send-buffer-in-flight = { $rate }、往復時間 { $time } で、1 フローあたり約 { $flight } バイトが送信中で、送信待ちは { $unsent } バイトだけでした。プログラムはそれ以上書き込めませんでした。
send-buffer-next = 送信バッファを大きくするか（--send-buffer、または指定を外して net.ipv4.tcp_wmem までシステムに拡大させる）、フローを増やすと、経路を満たせます。
send-buffer-next-copy = レーンを増やすか（--lanes）、システムの送信バッファを大きくすると（net.ipv4.tcp_wmem）、経路を満たせます。
send-buffer-not-full = バッファが満杯だった様子はなく、プログラムの書き込みがそれ以上速くありません。

## 送信側 CPU

sender-cpu-kept = 送信側は指定した負荷の { $share } を送信しました。
sender-cpu-lost-at-once = 実行できるときにまとめて送信した分の { $share } が、送信側より先で失われました。
sender-cpu-lost-behind = 送信した分の { $share } が送信側より先で失われました。送信を速くしても損失が増えるだけです。
sender-cpu-next = より速いコア、大きなメッセージ、オフロード、または複数コアでのフローの増加（--flows）で、さらに多く送信できます。
sender-cpu-next-copy = より速いコア、複数コアでのレーンの増加（--lanes）、または検証の省略（--no-verify）で、さらに多く送信できます。
sender-cpu-own-queue = 送信ホスト自身のキューが送信した分の { $share } を破棄しました。送信を速くしてもそこでの損失が増えるだけです。

## サーバー

server-account = 同時に処理中の { $calls } 呼び出しのうち、{ $own }（{ $share }）がサーバーにあり、それぞれ { $time } かかりました。
server-call = 1 回の呼び出しは { $response } で、経路の往復時間 { $round_trip } の { $trips } 倍でした。
server-classes = クライアントから見た時間は、{ $slow }が { $slow_time }、{ $fast }が { $fast_time } です。
server-next = サーバーを確認してください: ディスク（iostat）、スレッド（nfsstat -s）、プロセッサ。経路には余裕があります。
server-next-copy = レーンを増やすと（--lanes）、同時に送る要求が増えます。同じホストへの `linerate nfs` または `linerate stream` で、サーバーが遅いのか経路が遅いのかを区別できます。
server-agent-core = サーバー上のエージェントによると、最も忙しいコアは時間の { $core } を使われていました。
server-agent-disk = サーバー上のエージェントによると、ディスク { $disk } は時間の { $busy } を使われていました。
server-agent-disk-core = サーバー上のエージェントによると、ディスク { $disk } は時間の { $busy }、最も忙しいコアは { $core } を使われていました。
server-agent-shared = サーバーはクライアントと同じマシンにあり、クライアントの処理もこの値に含まれます。
server-reading = 読み出しは時間の { $waited } をサーバーの応答待ちで過ごしました。
server-unknown = 各呼び出しがサーバーにあった時間も、経路の往復時間（UDP）も不明です。1 回の呼び出しは { $response } でした。
server-writing = 書き込みは時間の { $waited } をサーバーの応答待ちで過ごしました。

## 帯域制限

shaper-allows-more = { $lost } の損失なら、さらに高いレートが可能です。
shaper-at-host = { $whose }ホストのインターフェース { $interface } では、時間の { $share } にわたりパケットがキューに滞留し、キューは毎秒 { $per_s } 回送信を抑えました。
shaper-busy-host = ホストに余裕がなかったため、経路が通す量はわかりません。
shaper-came-through = { $reached } が通過しました。
shaper-came-through-of-links = { $reached } が通過しました。これは既知のリンクが運べる量の { $share } です。
shaper-clustered = TCP は { $lost } を失いました。ポリサー、キューのあふれ、またはエラーのバーストのように、まとまった損失です。
shaper-copy-held-back = 時間の { $share } は、ウィンドウとバッファが TCP を抑えていました。
shaper-copy-like-policer = TCP の損失は { $lost } で、ポリサーまたは不良な経路のように見えます。
shaper-copy-queue = その間、経路のキューで往復時間が { $least } から { $loaded } に伸びました。
shaper-copy-stalled = TCP は { $lost } を失い、タイムアウトを待ちました。
shaper-copy-waited = 時間の { $waited } はデータが送信待ちで、時間の { $starved } はコピー先にデータがありませんでした。
shaper-datagrams-lost = データグラムの { $share } が 2 台のホストの間で失われました。
shaper-heavy = TCP は { $lost } を失いました。これは不良な経路より多い損失です。
shaper-held-back = 時間の { $share } は、ウィンドウとバッファが TCP を抑えていました。
shaper-hosts-ahead = ホストの処理は経路より先行し（使用率 { $occupied }）、経路は { $rate } を通しました。
shaper-hosts-had-time = ホストには余裕があり（使用率 { $occupied }）、経路は { $rate } を通しました。
shaper-like-policer = TCP は { $lost } を失いました。ポリサーのように見えますが、1 つの負荷では不良な経路と区別できません。
shaper-line-full = 速度のわかっているリンクが満杯です。
shaper-line-speed = 送信待ちのパケットは回線速度で送出されています。
shaper-lost-later = ただし、そのキューから出た分の { $lost } がその先で失われました。
shaper-marked = そこでセグメントの { $share } に輻輳マークが付きました。
shaper-neither = キューにも損失にも原因が見えません。
shaper-next = 経路の管理者に、シェーパー、ポリサー、遅いリンクの有無を確認してください。損失の出ない低い --rate での測定で、経路が通す量の下限がわかります。
shaper-next-copy = 経路だけを測定してください。同じホスト間の `linerate stream` で、帯域制限を損失、遅延、ウィンドウと区別できます。
shaper-next-receiver = 受信ホスト自身のキューイング規則（tc qdisc）を確認してください。確認応答がそこで待っています。
shaper-next-receiver-filter = 受信ホストのパケットフィルタ（tc filter、nft list ruleset、iptables -L -v）を確認してください。レートの設定があります。
shaper-next-return = 逆方向を測定してください（--direction receive）。復路が運べる量が少なくなっています。
shaper-next-sender = 送信ホスト自身のキューイング規則（tc qdisc）を確認してください。レートの設定があります。
shaper-next-sender-filter = 送信ホストのパケットフィルタ（tc filter show dev IF egress）を確認してください。レートの設定があります。
shaper-no-queue = 経路にキューの滞留はありませんでした。往復時間は { $least } から { $loaded } になりました。
shaper-no-window-or-buffer = ウィンドウでもバッファでも説明できません。
shaper-nothing-arrived = 何も届きませんでした。シェーパーなら一部は通します。
shaper-nothing-else = ウィンドウ、バッファ、損失のいずれでも説明できません。
shaper-pace = 輻輳ウィンドウが { $window } 倍の範囲で変わっても、到着はこのレートを保ちました（標準偏差 { $deviation }）。TCP は満杯の経路で { $lost } を失いました。
shaper-queue = その間、経路のキューで往復時間が { $least } から { $loaded } に伸びました。
shaper-queue-for = その間、時間の { $share } にわたり、経路のキューで往復時間が { $least } から { $loaded } に伸びました。
shaper-receiver-filter = 受信ホストのフィルタが到着パケットの { $filtered } を廃棄し、全体では { $lost } が失われました。
shaper-receiver-took-less = 経路は受信側の処理量より多く届けました。受信側で { $share } が失われました。
shaper-reordered = そこでセグメントの順序が入れ替わり、TCP がそれを損失とみなしました。
shaper-requests-queued = 要求と応答のデータが経路のキューに滞留し、往復時間が { $least } から { $loaded } に伸びました。
shaper-requests-unsent = 要求の平均 { $unsent } バイトが接続の送信バッファで待っていました。TCP が同時に送信できる最大 { $window } バイトを超えています。
shaper-requests-waited = 要求が経路でしばらく待ちました。往復時間が { $least } から { $loaded } に伸びました。
shaper-return-loss = 受信ホストが返したパケットの { $lost } が送信ホストに届かず、セグメントの { $retransmitted } が再送されました。届いたパケットは一定のレートを保っていました。確認応答が遅れすぎました。
shaper-return-queue = データは受信側まで { $there }、往復の残りは { $back } かかりました。確認応答が戻る途中で待っています。
shaper-sender-filter = 送信ホストのフィルタがパケットの { $share } を廃棄しました。
shaper-sender-had-little-time = 送信スレッドにはほとんど余裕がありませんでしたが（使用率 { $occupied }）、{ $reached } より多くは送信できませんでした。
shaper-sender-had-time = 送信スレッドには余裕がありましたが（使用率 { $occupied }）、{ $reached } より多くは送信できませんでした。
shaper-sender-held-up = 送信スレッドは経路のキューによるソフト割り込みで停滞し（使用率 { $occupied }）、{ $reached } より多くは送信できませんでした。
shaper-stalled = TCP は { $lost } を失い、時間の { $share } はタイムアウトを待ちました。ポリサーのように見えますが、1 つの負荷では不良な経路と区別できません。
shaper-start-up = 測定区間の終わりでもレートは上昇中で、経路が通す量はわかりません。
shaper-window-full = 受信側のウィンドウが満杯で、経路が通す量はわかりません。

## ソフト割り込みの CPU

softirq-cpu-next = 受信を複数のコアに分散するか（NIC のキュー、RPS）、パケットを大きくするか、インターフェースのオフロードを有効にしてください。
softirq-cpu-share = { $whose }のコア 1 つが、時間の { $share } をソフト割り込みに費やしました。

## 接続の立ち上がり

start-up-growth = レートは測定区間を通して上昇し、最初の 3 分の 1 の { $rate } 倍に、輻輳ウィンドウは { $window } 倍になりました。往復時間 { $time } では、TCP はまだ本来のレートに達していません。
start-up-lost = ただし、その前または途中に損失があり、その後の TCP の伸びは緩やかです。
start-up-next = ウォームアップ（--warmup）と測定時間（--time）を長くしてください。TCP が本来のレートに達するには多くの往復が必要です。
start-up-no-growth = 輻輳ウィンドウとともにレートが伸びてはいません。

## ストレージ

storage-disk = ディスク { $disk } は時間の { $busy } を処理中でした。
storage-read-next = 経路の残りの能力を知るには --from memory でコピーしてください。より速いディスク、キャッシュの利用（--cache warm）、またはレーンの増加（--lanes）で、さらに速く読み出せます。
storage-read-waited = 段階「{ $stage }」は、時間の { $share } をコピー元のストレージ待ちで過ごしました。
storage-stalled = 時間の { $share } は、そのホストの少なくとも 1 つのタスクがストレージを待ちました。
storage-stopped = { $whose }のホストが CPU 割り当ての上限で停止したため、ストレージ待ちと区別できません。
storage-write-next = 経路の残りの能力を知るには --to discard でコピーしてください。より速いディスクを使うか、永続化の時期をシステムに任せると（--sync none）、さらに速く書き込めます。
storage-write-waited = 段階「{ $stage }」は時間の { $written } を、段階「同期」は { $synced } をコピー先のストレージ待ちで過ごしました。

## テスター

tester-next = より速いホストを使うと、装置の能力をさらに示せます。
tester-next-loopback = ホスト同士をケーブルでつなぎ、`linerate calibrate` でテスターの限界を測定してください。
tester-of-bypassed = 結果は、同じホストが装置なしで達した値の { $share } です。
tester-of-loopback = 結果は、遅い方のホストが自分自身を相手に達した値の { $share } です。この値はテスターの限界の上限の見積もりです。
tester-of-own-server = 結果は、要求側のホストが自身のサーバーを相手にネットワークなしで達する値の { $share } です。
tester-overlap = 両方の測定値の範囲が重なっています。

## 装置のスループット

throughput-calibrated = ポート間に装置がない場合、テスターは { $rate } フレーム/s に達しました。
throughput-lost = { $rate } フレーム/s で{ $offered }し、{ $lost } フレームが戻りませんでした。
throughput-lower-bound = { $rate } フレーム/s は下限値です。このレートまでは、許容範囲を超える損失なしに負荷を与えられました。
throughput-next-faster = より速いテスター、または大きなフレームを使ってください。
throughput-next-held-up = この試行でテスターは { $time } 停滞しました。送信に使うコアでほかの処理を動かさずに、測定し直してください。
throughput-no-loss = 試した最高レートの { $rate } フレーム/s まで、フレームの損失はありませんでした。
throughput-no-rate = 許容範囲を超える損失なしに与えられたレートはありません。
throughput-not-calibrated = テスターの校正がないため、受信ポートがそれを受け取れたかどうかは不明です。
throughput-offered = { $rate } フレーム/s で{ $offered }しました。
throughput-open = テスターが与えた試行からは、{ $rate } フレーム/s を超えられない原因がわかりません。
throughput-room = 装置を迂回すると、テスターは { $rate } フレーム/s（{ $times } 倍）に達しました。
throughput-tester = { $rate } フレーム/s は、テスターの限界 { $limit } フレーム/s の { $share } です。装置はさらに多く運べる可能性があります。
throughput-wire = { $rate } フレーム/s は、回線が運べる量の { $share } です。

## 説明のつかないもの

unexplained-busy-core = { $whose }ホストのコア 1 つは時間の { $busy } を処理中でしたが、負荷自身のスレッドは { $own } だけでした。
unexplained-declared-speed = インターフェースの申告速度が誤っているため、満杯の回線と帯域制限を区別できません。
unexplained-no-agent = { $whose }ホストではエージェントが動いていないため、そこでの制限要因を観測していません。
unexplained-other-traffic = { $whose }ホストのインターフェース { $interface } が運んだうち、{ $share } はほかのトラフィックでした。
unexplained-queue-dropped = { $whose }ホストのインターフェース { $interface } のキューが、パケットの { $share } を廃棄しました。

## 判定

verdict-also = { $other }も制限要因の可能性があります。
verdict-brief-window = ただし、{ $time } の測定区間はそれを示すには短すぎます。測定時間（--time）か送信量（--bytes）を増やしてください。
verdict-stolen = ハイパーバイザーがホストの時間の { $took } を使い、影響した可能性があります。

## 確度の条件

confidence-counted = 結果をそれだけで説明するものが計数されました。
confidence-counts = 損失とバッファを除くと、送信側と受信側の計数の差は { $difference } です。
confidence-interleaved = 装置なしの測定は、同じ条件でこの測定と交互に行われました。
confidence-no-other-sign = ほかの制限要因を支持する兆候はありません。
confidence-not-counted = 結果をそれだけで説明するものは計数されていません。
confidence-not-interleaved = 装置なしの測定は別の時刻に行われ、そのときのマシンの負荷は異なった可能性があります。
confidence-other-sign = { $other }を支持する兆候もあります。
confidence-sampled = { $time } の測定区間で { $samples } 回採取されました。確度「高」には { $fewest } 回必要です。
confidence-waited = 負荷のスレッドがコアを待った時間は、送信側で { $sender }、受信側で { $receiver } です。

## ウィンドウ

window-busy-host = ただし、ホストにはそれ以上速く読み書きする余裕がありませんでした。
window-held-back = 送るデータがある時間の { $share } で、受信側のウィンドウが TCP を抑えていました。
window-in-flight = { $rate }、往復時間 { $time } で、約 { $flight } バイトが送信中でした。受信側のウィンドウは { $window }、輻輳ウィンドウは { $congestion } バイトです。
window-next = 受信バッファを大きくするか（--receive-buffer、または指定を外してシステムに拡大させる）、フローを増やすと、経路を満たせます。
window-next-copy = レーンを増やすか（--lanes）、システムの受信バッファを大きくすると（net.ipv4.tcp_rmem）、経路を満たせます。

## 回線

wire-calls = { $bytes } バイトの呼び出し
wire-collisions = 経路にキューが滞留していました。回線の残りは衝突に使われた可能性があります。
wire-datagrams = { $bytes } バイトのデータグラム
wire-declared-wrong = 結果は { $line } の回線が運べる量の { $share } です。インターフェースの申告速度が誤っています。
wire-filled = インターフェースのカウンタによると、フレームが { $line } の回線の { $share } を占めました。
wire-half-duplex = この回線は半二重です。両方向で共有されます。
wire-half-duplex-acknowledged = この回線は半二重です。2 セグメントごとの確認応答 1 つもこの上限に含まれます。
wire-interface-full = 送信ホストのインターフェース { $interface } では、フレームが回線の { $share } を占めました。
wire-lost-later = ただし、データグラムの { $lost } がその先で失われました。
wire-next = より速いリンク、またはメッセージが小さければ大きなメッセージで、さらに多く運べます。
wire-next-collisions = ポートの衝突カウンタ（`ip -s -s link`、SNMP の EtherLike-MIB）を確認するか、スイッチを使ってください。
wire-next-copy = より速いリンクで、さらに多く運べます。
wire-next-shared = ほかに回線を使うものがないときに測定するか、より速いリンクを使ってください。
wire-other-traffic = インターフェースが運んだうち { $share } はほかのトラフィックで、回線は満杯でした。
wire-payload = 受信側には、{ $line } の回線が MTU { $mtu } の{ $carriers }で運べるペイロード { $payload } の { $share } が届きました。
wire-requests = 要求と応答とその確認応答が、{ $whose }ホストのインターフェース { $interface } の回線の { $share } を占めました。
wire-queue = 時間の { $share } にわたりパケットがインターフェース { $interface } のキューに滞留し、回線速度で送出されました。
wire-segments = フルサイズのセグメント
wire-unknown = どのリンクの速度もわからないため、満杯の回線と遅いホストを区別できません（エージェントに --link-speed を指定してください）。
wire-unknown-copy = どのリンクの速度もわからないため、満杯の回線と帯域制限を区別できません（エージェントに --link-speed を指定してください）。
wire-used = 回線が運べる量の { $share } が使われました。

## 文の中の語

amount-less = 減少し
amount-more = 増加し
counted-addresses = アドレス
counted-datagrams = データグラム
counted-frames-in-a-row = 連続フレーム
counted-hosts = ホスト
counted-segments = セグメント
did-completed = 完了数
did-received = 受信
did-sent = 送信
does-answering = 応答
does-asking = 要求
does-receiving = 受信
does-sending = 送信
ladder-end-asking = 要求側の
ladder-end-calling = 呼び出し側の
ladder-end-serving = サーバー側の
operations-other-operations = その他の操作
operations-reads = 読み出し
operations-writes = 書き込み
trips-responses = 応答
trips-round-trips = 往復
whose-destination-s = コピー先
whose-machine = マシン
whose-reading = 読み出し側
whose-receiving = 受信
whose-receiving-host = 受信ホスト
whose-sending = 送信
whose-sending-host = 送信ホスト
whose-source-s = コピー元
whose-writing = 書き込み側
